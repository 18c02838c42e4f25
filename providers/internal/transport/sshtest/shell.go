package sshtest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// shell has a shell of this machine run a line, as sshd does: the command lives on when the connection is cut.
func (s *Server) shell(_ *ssh.ServerConn, ch ssh.Channel, line, connection string) {
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(os.Environ(), "SSH_CONNECTION="+connection)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		status(ch, 255)
		return
	}
	// Pipes of our own, so that the status is told when the command ends, whoever else holds them.
	outR, outW, err := os.Pipe()
	if err != nil {
		status(ch, 255)
		return
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		_, _ = outR.Close(), outW.Close()
		status(ch, 255)
		return
	}
	cmd.Stdout, cmd.Stderr = outW, errW
	err = cmd.Start()
	_, _ = outW.Close(), errW.Close()
	var output sync.WaitGroup
	output.Go(func() { _, _ = io.Copy(ch, outR); _ = outR.Close() })
	output.Go(func() { _, _ = io.Copy(counting{ch.Stderr(), &s.said}, errR); _ = errR.Close() })
	if err != nil {
		output.Wait()
		status(ch, 255)
		return
	}
	go func() { _, _ = io.Copy(in, ch); _ = in.Close() }()
	ended := make(chan struct{})
	go func() { // nothing of a test outlives it
		select {
		case <-s.ctx.Done():
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		case <-ended:
		}
	}()
	state, err := cmd.Process.Wait()
	close(ended)
	n := 255
	var signal syscall.Signal
	if err == nil {
		n = state.ExitCode()
		if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			signal = ws.Signal()
		}
	}
	if errors.Is(err, os.ErrProcessDone) {
		n = 255
	}
	for name, number := range map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "PIPE": syscall.SIGPIPE} {
		if signal == number {
			_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal, Message, Language string
			}{name, "", ""}))
			output.Wait()
			return
		}
	}
	status(ch, n)
	output.Wait()
}

// counting counts the lines that were written.
type counting struct {
	io.Writer
	n *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n.Add(int64(bytes.Count(p[:n], []byte("\n"))))
	return n, err
}
