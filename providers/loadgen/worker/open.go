package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"plumb/providers/loadgen/engine"
	"plumb/providers/loadgen/kernel"
	"plumb/providers/loadgen/port"
	"plumb/providers/loadgen/vhost"
)

// fcs is what a frame on a virtual port has less than the size that users give.
const fcs = 4

// Here opens real ports and an engine in this process, and waits until the other sides of the ports take frames.
func Here(ctx context.Context, o Open) (Engine, Ready, error) {
	ports, err := OpenPorts(ctx, o.Ports)
	if err != nil {
		return nil, Ready{}, err
	}
	e, err := engine.New(o.Engine, ports)
	if err != nil {
		return nil, Ready{}, errors.Join(err, closeAll(ports))
	}
	if err := e.Ready(ctx); err != nil {
		return nil, Ready{}, errors.Join(err, e.Close())
	}
	var r Ready
	for i, p := range ports {
		r.Ports = append(r.Ports, Info(o.Ports[i], p))
	}
	return e, r, nil
}

var _ Opener = Here

// Info is what there is to know of a port that was opened as s says.
func Info(s PortSpec, p port.Port) PortInfo {
	return PortInfo{Name: p.Name(), Kind: kindOf(s, p), MAC: p.MAC().String(), Queues: p.Queues(), MaxFrame: p.MaxFrame()}
}

// kindOf says for people what a port became: "vhost-user", "AF_XDP copy, native XDP program".
func kindOf(s PortSpec, p port.Port) string {
	if d, ok := p.(interface{ Describe() string }); ok {
		return d.Describe()
	}
	return s.Kind
}

// OpenPorts opens ports in this process. When one fails, none is left open.
func OpenPorts(ctx context.Context, specs []PortSpec) ([]port.Port, error) {
	var ports []port.Port
	for _, s := range specs {
		p, err := s.open(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open port %s: %w", s, err), closeAll(ports))
		}
		ports = append(ports, p)
	}
	return ports, nil
}

func closeAll(ports []port.Port) error {
	var errs []error
	for _, p := range ports {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

func (p PortSpec) open(ctx context.Context) (port.Port, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	longest := max(p.Frame-fcs, 0)
	if p.Kind == VhostUser {
		mac, err := net.ParseMAC(p.MAC)
		if err != nil && p.MAC != "" {
			return nil, err
		}
		return vhost.Open(ctx, vhost.Config{Socket: p.Socket, Server: p.Server, Mode: fs.FileMode(p.SocketMode), Queues: p.Queues, RxSize: p.RxSize, TxSize: p.TxSize,
			MaxFrame: longest, MAC: mac, Hugepages: p.Hugepages})
	}
	mode := map[string]string{AFXDP: kernel.AFXDP, AFPacket: kernel.AFPacket, Kernel: kernel.Auto}
	copies := map[string]string{"": kernel.Auto, "zerocopy": kernel.On, "copy": kernel.Off}
	return kernel.Open(ctx, kernel.Config{Interface: p.Interface, Netns: p.Netns, Mode: mode[p.Kind], ZeroCopy: copies[p.Mode], Tagged: p.Tagged, Queues: p.Queues,
		RxSize: p.RxSize, TxSize: p.TxSize, MaxFrame: longest})
}
