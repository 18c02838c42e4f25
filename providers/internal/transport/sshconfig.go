package transport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kevinburke/ssh_config"
)

// SSHConfig says how a host is reached by SSH. What is left empty comes from ssh_config(5): first the user's file, then the system's; then from OpenSSH's
// defaults.
type SSHConfig struct {
	Address    string // name, IP address, or a Host of ssh_config
	User       string
	Port       int
	Key        string // path of a private key, tried before all others
	Passphrase string // of keys
	Password   string
	KnownHosts []string      // files; nil: as ssh_config says. Host keys are always checked, whatever StrictHostKeyChecking says
	Config     string        // path of the ssh_config to read instead of the user's and the system's; "none": none
	Sudo       Sudo          // how commands become root
	Timeout    time.Duration // of connecting and logging in; 0: ConnectTimeout of ssh_config, else 20 s
	KeepAlive  time.Duration // how often the host is asked whether it is there; 0: ServerAliveInterval, else 15 s
	Sessions   int           // sessions at a time at most; 0: 8, below MaxSessions 10 of sshd_config(5). Fewer when the host refuses
}

// Sudo says when commands are run through `sudo -n`.
type Sudo string

const (
	SudoAuto  Sudo = "" // when the user is not root
	SudoNever Sudo = "never"
)

// sshTarget is one machine of the way to a host, with everything resolved.
type sshTarget struct {
	alias, host, user string
	port              int
	keys              []string // files; the first may be one that was asked for
	asked             bool     // the first key was asked for: it is tried before the agent's
	only              bool     // of the agent's keys, only those of the files are tried
	agent             string   // socket; "" for none
	knownHosts        []string
	jumps             []string // of ProxyJump
	timeout, alive    time.Duration
}

func (t *sshTarget) address() string { return joinPort(t.host, t.port) }

func (t *sshTarget) String() string { return t.user + "@" + t.address() }

func joinPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}

// sshFiles are the parsed files of ssh_config, in order of precedence.
type sshFiles struct {
	files []*ssh_config.Config
	home  string
	skip  string // what of them is not looked at, for errors
}

const systemConfig = "/etc/ssh/ssh_config"

// readSSHFiles reads ssh_config. A file that is not there is an empty one, unless it was asked for.
func readSSHFiles(config string) (*sshFiles, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	f := &sshFiles{home: home}
	names := []string{filepath.Join(home, ".ssh", "config"), systemConfig}
	switch config {
	case "":
	case "none":
		return f, nil
	default:
		names = []string{f.path(config)}
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) && config == "" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ssh_config: %w", err)
		}
		c, err := ssh_config.DecodeBytes(data)
		if err != nil && config == "" && name == systemConfig && strings.Contains(err.Error(), "Match") {
			// Red Hat's has a Match that only concerns ciphers: nobody should have to change it.
			f.skip = fmt.Sprintf(" (%s was not looked at: %s)", name, err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w. Plumb reads Host and Include, not Match: give the ssh block a config of its own, or config = \"none\"", name, err)
		}
		f.files = append(f.files, c)
	}
	return f, nil
}

func (f *sshFiles) path(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(f.home, rest)
	}
	return p
}

// get is the first value of a keyword for a host; "" when there is none.
func (f *sshFiles) get(alias, key string) (string, error) {
	for _, c := range f.files {
		v, err := c.Get(alias, key)
		if err != nil {
			return "", fmt.Errorf("ssh_config: %w", err)
		}
		if v != "" {
			return v, nil
		}
	}
	return "", nil
}

func (f *sshFiles) all(alias, key string) ([]string, error) {
	var out []string
	for _, c := range f.files {
		v, err := c.GetAll(alias, key)
		if err != nil {
			return nil, fmt.Errorf("ssh_config: %w", err)
		}
		for _, s := range v {
			if s != "" {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// defaultKeys are tried when none is named, as ssh(1) does.
var defaultKeys = []string{"id_ed25519", "id_ecdsa", "id_rsa"}

// resolve finds out all about one machine of the way. Only the last one takes what cfg says beside the address.
func (f *sshFiles) resolve(cfg SSHConfig) (*sshTarget, error) {
	t := &sshTarget{alias: cfg.Address, host: cfg.Address, user: cfg.User, port: cfg.Port, timeout: cfg.Timeout, alive: cfg.KeepAlive}
	values := map[string]string{}
	for _, key := range []string{"HostName", "User", "Port", "IdentityAgent", "ProxyJump", "ProxyCommand", "UserKnownHostsFile", "GlobalKnownHostsFile", "ConnectTimeout", "ServerAliveInterval", "IdentitiesOnly"} {
		v, err := f.get(t.alias, key)
		if err != nil {
			return nil, err
		}
		values[key] = v
	}
	if v := values["HostName"]; v != "" {
		t.host = strings.ReplaceAll(v, "%h", t.alias)
	}
	if t.user == "" {
		t.user = values["User"]
	}
	if t.user == "" {
		me, err := user.Current()
		if err != nil {
			return nil, fmt.Errorf("user to log in to %s as: %w", t.alias, err)
		}
		t.user = me.Username
	}
	var err error
	if t.port == 0 {
		if t.port, err = number(values["Port"], 22); err != nil {
			return nil, fmt.Errorf("ssh_config: Port of %s: %w", t.alias, err)
		}
	}
	if t.timeout == 0 {
		s, err := number(values["ConnectTimeout"], 20)
		if err != nil {
			return nil, fmt.Errorf("ssh_config: ConnectTimeout of %s: %w", t.alias, err)
		}
		t.timeout = time.Duration(s) * time.Second
	}
	if t.alive == 0 {
		s, err := number(values["ServerAliveInterval"], 0)
		if err != nil {
			return nil, fmt.Errorf("ssh_config: ServerAliveInterval of %s: %w", t.alias, err)
		}
		if t.alive = time.Duration(s) * time.Second; s == 0 {
			t.alive = 15 * time.Second
		}
	}
	if err := f.keys(t, cfg, values); err != nil {
		return nil, err
	}
	for _, p := range cfg.KnownHosts {
		t.knownHosts = append(t.knownHosts, f.path(p))
	}
	if cfg.KnownHosts == nil {
		t.knownHosts = f.knownHosts(t, values)
	}
	switch jump := values["ProxyJump"]; {
	case strings.EqualFold(jump, "none"):
	case jump != "":
		t.jumps = strings.Split(jump, ",")
	case values["ProxyCommand"] != "" && !strings.EqualFold(values["ProxyCommand"], "none"):
		return nil, fmt.Errorf("ssh_config: %s has a ProxyCommand, which Plumb does not run: use ProxyJump there, or jump = host.NAME in the ssh block", t.alias)
	}
	return t, nil
}

func (f *sshFiles) keys(t *sshTarget, cfg SSHConfig, values map[string]string) error {
	if cfg.Key != "" {
		t.keys, t.asked = []string{f.path(cfg.Key)}, true
	}
	named, err := f.all(t.alias, "IdentityFile")
	if err != nil {
		return err
	}
	for _, k := range named {
		t.keys = append(t.keys, f.expand(k, t))
	}
	if len(t.keys) == 0 {
		for _, k := range defaultKeys {
			t.keys = append(t.keys, filepath.Join(f.home, ".ssh", k))
		}
	}
	t.only = strings.EqualFold(values["IdentitiesOnly"], "yes")
	switch agent := values["IdentityAgent"]; {
	case strings.EqualFold(agent, "none"):
	case agent == "" || agent == "SSH_AUTH_SOCK":
		t.agent = os.Getenv("SSH_AUTH_SOCK")
	case strings.HasPrefix(agent, "$"):
		t.agent = os.Getenv(strings.Trim(agent, "${}"))
	default:
		t.agent = f.expand(agent, t)
	}
	return nil
}

func (f *sshFiles) knownHosts(t *sshTarget, values map[string]string) []string {
	user, system := values["UserKnownHostsFile"], values["GlobalKnownHostsFile"]
	if user == "" {
		user = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
	}
	if system == "" {
		system = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
	}
	var out []string
	for _, p := range strings.Fields(user + " " + system) {
		if p != "none" {
			out = append(out, f.expand(p, t))
		}
	}
	return out
}

// expand replaces the tokens of ssh_config(5) that paths have.
func (f *sshFiles) expand(p string, t *sshTarget) string {
	local := ""
	if me, err := user.Current(); err == nil {
		local = me.Username
	}
	return f.path(strings.NewReplacer("%%", "%", "%d", f.home, "%h", t.host, "%n", t.alias, "%p", strconv.Itoa(t.port), "%r", t.user, "%u", local).Replace(strings.Trim(p, `"`)))
}

func number(s string, def int) (int, error) {
	if s == "" {
		return def, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return n, nil
}

// jumpsAtMost ends chains that lead back to where they began.
const jumpsAtMost = 16

// way is the machines that a target is reached through, in order: those of its ProxyJump, and those that lead to the first of them.
func (f *sshFiles) way(t *sshTarget, seen []string) ([]*sshTarget, error) {
	if seen = append(seen, t.alias); len(seen) > jumpsAtMost {
		return nil, fmt.Errorf("ssh_config: ProxyJump goes round: %s", strings.Join(seen, ", "))
	}
	var out []*sshTarget
	for i, word := range t.jumps {
		c, err := jumpConfig(word)
		if err != nil {
			return nil, err
		}
		jump, err := f.resolve(c)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if out, err = f.way(jump, seen); err != nil {
				return nil, err
			}
		}
		out = append(out, jump)
	}
	return out, nil
}

// jumpConfig reads one word of ProxyJump: [user@]host[:port], or an ssh URI.
func jumpConfig(s string) (SSHConfig, error) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "ssh://")
	var c SSHConfig
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		c.User, s = s[:i], s[i+1:]
	}
	c.Address = s
	if rest, ok := strings.CutPrefix(s, "["); ok {
		host, port, found := strings.Cut(rest, "]")
		if !found {
			return c, fmt.Errorf("ssh_config: ProxyJump %q: no ] after the address", s)
		}
		c.Address, s = host, port
		if s == "" {
			return c, nil
		}
	}
	if i := strings.LastIndexByte(s, ':'); i >= 0 && strings.Count(s, ":") == 1 {
		port, err := number(s[i+1:], 0)
		if err != nil || port == 0 {
			return c, fmt.Errorf("ssh_config: ProxyJump %q: %q is no port", s, s[i+1:])
		}
		if c.Port = port; i > 0 {
			c.Address = s[:i]
		}
	}
	return c, nil
}
