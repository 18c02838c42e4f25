package loadgen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/marked"
	"plumb/providers/internal/pathend"
	"plumb/providers/internal/vhostsock"
	"plumb/providers/loadgen/worker"
)

// version of the generator, for manifests: of its frames, pacing and counting.
const version = "1.0"

// Generator is the generator type loadgen.
type Generator struct{ schema *schema.Generator }

var _ providers.GeneratorType = (*Generator)(nil)

// NewGenerator is the type.
func NewGenerator() *Generator { return &Generator{schema: generatorSchema()} }

// Schema is constant.
func (g *Generator) Schema() *schema.Generator { return g.schema }

var errNoHost = errors.New("generator loadgen needs a host")

// Claims are the CPUs, polling when threads never sleep, the sockets, and hugepages where they are asked for. Ports that say neither what they are or say
// both are an error.
func (g *Generator) Claims(_ context.Context, _ providers.Host, v cty.Value) (providers.Claims, error) {
	var out providers.Claims
	c, err := decode(v)
	if err != nil {
		return out, err
	}
	out.Cores = []providers.CoreClaim{{Cores: c.engine.CPUs, Use: "loadgen", Polling: c.engine.Idle == 0, Shared: c.shared, Path: cty.GetAttrPath("cpus")}}
	s, err := c.shapeOf(providers.Traffic{})
	if err != nil {
		return out, err
	}
	for i, p := range c.open(s).Ports {
		at := cty.GetAttrPath("port").IndexInt(i)
		if p.Socket != "" {
			out.Sockets = append(out.Sockets, providers.SocketEnd{Socket: p.Socket, Server: p.Server, Queues: p.Queues, Path: at.GetAttr("vhost_user")})
		}
		if p.Hugepages {
			out.Hugepages = append(out.Hugepages, providers.HugepageClaim{Node: -1, Bytes: memory(p), What: fmt.Sprintf("frames of port %d", i), Path: at.GetAttr("hugepages")})
		}
	}
	return out, nil
}

// memory of a vhost-user port's frames in bytes: each starts at a cache line, behind one with its virtio header.
func memory(p worker.PortSpec) uint64 {
	const line = 64
	return uint64(p.Queues) * uint64(p.RxSize+p.TxSize) * uint64(line+(p.Frame+line-1)/line*line)
}

// Open opens the ports and waits until their other sides take frames.
func (g *Generator) Open(ctx context.Context, req providers.OpenRequest) (providers.Generator, error) {
	if req.Host == nil {
		return nil, errNoHost
	}
	c, err := decode(req.Config)
	if err != nil {
		return nil, err
	}
	r := &rig{config: c, log: req.Log, host: req.Host, mark: req.Mark, start: starter(req)}
	r.from, r.to = pathend.Assign(c.sockets(), req.Path)
	s, err := c.shapeOf(req.Traffic)
	if err != nil {
		return nil, err
	}
	if err := r.note(ctx); err != nil {
		return nil, err
	}
	if err := r.reopen(ctx, s); err != nil {
		return nil, errors.Join(err, r.forget(context.WithoutCancel(ctx)))
	}
	return r, nil
}

// starter opens ports in this process when the host is this machine, and in a worker elsewhere.
func starter(req providers.OpenRequest) func(context.Context, worker.Open) (worker.Tester, error) {
	if providers.ThisMachine(req.Host.Conn()) {
		return func(ctx context.Context, o worker.Open) (worker.Tester, error) {
			return worker.Local(ctx, o, worker.Here)
		}
	}
	return func(ctx context.Context, o worker.Open) (worker.Tester, error) {
		return worker.Start(ctx, worker.Place{Host: req.Host, Mark: req.Mark, Program: itself, Log: req.Log}, o)
	}
}

// itself is the running program.
func itself() ([]byte, error) { return os.ReadFile("/proc/self/exe") }

// socketsFile lists, one a line, the sockets that a generator makes. It is in a folder of the generator's own on its host, from before it opens until it is
// closed, so that they can be removed after a kill.
const socketsFile = "sockets"

func socketsGroup(testbed string) string { return marked.Group(testbed, "loadgen-sockets") }

func (r *rig) folder() string {
	return path.Join(socketsGroup(r.mark.Testbed), marked.Name(r.mark.Address))
}

// note writes the list, and makes the folders that the sockets come into.
func (r *rig) note(ctx context.Context) error {
	owned := r.config.owned()
	if len(owned) == 0 {
		return nil
	}
	dirs := []string{r.folder()}
	for _, s := range owned {
		dirs = append(dirs, path.Dir(s))
	}
	conn := r.host.Conn()
	if _, err := conn.Run(ctx, providers.Cmd{Args: append([]string{"mkdir", "-p", "--"}, dirs...)}); err != nil {
		return fmt.Errorf("make the folders of sockets: %w", err)
	}
	return conn.WriteFile(ctx, path.Join(r.folder(), socketsFile), []byte(strings.Join(owned, "\n")+"\n"), 0o644)
}

// forget removes the list.
func (r *rig) forget(ctx context.Context) error {
	if len(r.config.owned()) == 0 {
		return nil
	}
	return removeFolders(ctx, r.host.Conn(), r.mark.Testbed, r.folder())
}

// removeFolders removes folders of the group, and those above that are empty then, up to the testbed's.
func removeFolders(ctx context.Context, conn providers.Conn, testbed string, dirs ...string) error {
	group := socketsGroup(testbed)
	const script = `group=$1; shift; rm -rf -- "$@"; rmdir -- "$group" "${group%/*}" "${group%/*/*}" 2>/dev/null; true`
	if _, err := conn.Run(ctx, providers.Cmd{Args: append([]string{"sh", "-c", script, "plumb-forget", group}, dirs...)}); err != nil {
		return fmt.Errorf("remove the list of a generator's sockets: %w", err)
	}
	return nil
}

// Sweep ends workers, and removes sockets that a generator in a process that was killed has left. A socket that somebody listens on stays.
func (g *Generator) Sweep(ctx context.Context, h providers.Host, testbed string) error {
	if h == nil {
		return errNoHost
	}
	if err := worker.Sweep(ctx, h, testbed); err != nil {
		return err
	}
	files, err := h.Conn().ReadFiles(ctx, path.Join(socketsGroup(testbed), "*", socketsFile))
	if err != nil || len(files) == 0 {
		return err
	}
	var sockets, dirs []string
	for name, list := range files {
		sockets, dirs = append(sockets, strings.Fields(string(list))...), append(dirs, path.Dir(name))
	}
	slices.Sort(dirs)
	if err := vhostsock.RemoveStale(ctx, h.Conn(), sockets...); err != nil {
		return err
	}
	return removeFolders(ctx, h.Conn(), testbed, dirs...)
}
