package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/bootargs"
)

const defaultMount = "/dev/hugepages"

// Hugepages is host_hugepages: the pools of one page size, and a place where they are mounted. It is a setting: the counts that were found,
// and whether there was a mount, are put back.
type Hugepages struct{}

var (
	_ providers.Resource = Hugepages{}
	_ providers.Preparer = Hugepages{}
	_ providers.Planner  = Hugepages{}
	_ providers.Claimer  = Hugepages{}
)

// Schema is constant.
func (Hugepages) Schema() *schema.Resource {
	return &schema.Resource{
		Type:        "host_hugepages",
		Description: "Hugepages of one size, by NUMA node, and a hugetlbfs to reach them by. A count that the kernel does not grant in full is an error and is rolled back.",
		Example: `resource "host_hugepages" "dut" {
  size  = "2M"
  pages = { "0" = 1024 }
}`,
		Setting: true,
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"size": {Type: cty.String, Required: true, Cost: schema.Replace, Canonical: canonicalSize,
				Description: "Page size: 2M or 1G on x86, or another that the kernel offers in /sys/kernel/mm/hugepages."},
			"pages": {Type: cty.Map(cty.Number), Required: true, Validate: validPages,
				Description: "Pages by NUMA node: { \"0\" = 1024 }. Nodes that are not named are left alone."},
			"when": {Type: cty.String, Optional: true, Default: cty.StringVal("now"), OneOf: []string{"now", "boot"},
				Description: "now: the pages are taken from free memory at once. boot: the boot loader tells the kernel to reserve them (hugepagesz, hugepages), which takes a reboot unless they are there already; pages of 1G can mostly not be had later. Kernels before 5.15 reserve the same number on every node."},
			"mount": {Type: cty.String, Optional: true, Default: cty.StringVal(defaultMount), Validate: validMount,
				Description: "Where hugetlbfs is mounted when none of that page size is mounted anywhere. It is unmounted again by destroy only then. \"\": nothing is mounted."},
		}},
	}
}

func canonicalSize(v cty.Value) (cty.Value, error) {
	n, err := parseSize(v.AsString())
	if err != nil {
		return cty.NilVal, err
	}
	return cty.StringVal(formatSize(n)), nil
}

func validPages(v cty.Value) error {
	if !v.IsKnown() {
		return nil
	}
	if v.LengthInt() == 0 {
		return errors.New("no node is named; write for example { \"0\" = 1024 }")
	}
	for it := v.ElementIterator(); it.Next(); {
		k, n := it.Element()
		if id, err := strconv.ParseUint(k.AsString(), 10, 16); err != nil || strconv.FormatUint(id, 10) != k.AsString() {
			return fmt.Errorf("%q is not a NUMA node: they are numbers from 0", k.AsString())
		}
		switch {
		case !n.IsKnown():
		case n.IsNull():
			return fmt.Errorf("node %s has no count", k.AsString())
		default:
			if err := schema.Whole(0, 1<<32)(n); err != nil {
				return fmt.Errorf("node %s: %w", k.AsString(), err)
			}
		}
	}
	return nil
}

func validMount(v cty.Value) error {
	if p := v.AsString(); p != "" && (!strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/")) {
		return fmt.Errorf("%q is not an absolute path without a slash at its end", p)
	}
	return nil
}

// want is a planned object. Unknown parts are left out.
type want struct {
	size  uint64
	pages map[int]uint64
	mount string
	boot  bool // reserved at boot
}

func decodeWant(v cty.Value) (want, error) {
	w := want{pages: map[int]uint64{}}
	var err error
	if s := v.GetAttr("size"); s.IsKnown() && !s.IsNull() {
		if w.size, err = parseSize(s.AsString()); err != nil {
			return w, err
		}
	}
	if p := v.GetAttr("pages"); p.IsKnown() && !p.IsNull() {
		for k, n := range p.AsValueMap() {
			if !n.IsKnown() || n.IsNull() {
				continue
			}
			id, err := strconv.Atoi(k)
			if err != nil {
				return w, fmt.Errorf("pages: %w", err)
			}
			w.pages[id], _ = n.AsBigFloat().Uint64()
		}
	}
	if m := v.GetAttr("mount"); m.IsKnown() && !m.IsNull() {
		w.mount = m.AsString()
	}
	w.boot = attr.Text(v, "when") == "boot"
	return w, nil
}

func (w want) nodes() []int { return slices.Sorted(maps.Keys(w.pages)) }

// Read reports the counts of the nodes that are named, "" for a mount that is missing, and "now" for what the boot loader does not keep. A setting is never gone.
func (Hugepages) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	c, err := poolsOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	m, err := c.look(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	w, err := decodeWant(req.Prior)
	if err != nil {
		return providers.ReadResult{}, err
	}
	now := current(m, w, req.Prior)
	if w.boot {
		kept, err := w.kept(ctx, req.Host, req.Mark)
		if err != nil {
			return providers.ReadResult{}, err
		}
		if !kept {
			out := now.AsValueMap()
			out["when"] = cty.StringVal("now")
			now = cty.ObjectVal(out)
		}
	}
	return providers.ReadResult{Current: now}, nil
}

func current(m *memory, w want, prior cty.Value) cty.Value {
	out := prior.AsValueMap()
	pages := map[string]cty.Value{}
	for _, id := range w.nodes() {
		if p, ok := m.pool(id, w.size); ok {
			pages[strconv.Itoa(id)] = cty.NumberUIntVal(p.total)
		}
	}
	out["pages"] = mapOrEmpty(pages, cty.Number)
	if w.mount != "" && len(m.mounted(w.size)) == 0 {
		out["mount"] = cty.StringVal("")
	}
	return cty.ObjectVal(out)
}

// undo is what was found.
type undo struct {
	Size   uint64            `json:"size"`
	Pages  map[string]uint64 `json:"pages"`            // by node
	Mounts []string          `json:"mounts,omitempty"` // of that size
	Absent []string          `json:"absent,omitempty"` // folders of mount points that did not exist
	Ours   []string          `json:"ours,omitempty"`   // where we mount: written before we do
	Boot   bootargs.Found    `json:"boot,omitempty"`   // of the boot loader; nil: never asked for
}

func decodeUndo(raw json.RawMessage) (undo, error) {
	var u undo
	if len(raw) == 0 {
		return u, nil
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		return u, fmt.Errorf("what was recorded of the hugepages found: %w", err)
	}
	return u, nil
}

// Prepare records what is there. On an update it adds nodes that were not managed before.
func (Hugepages) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	c, err := poolsOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	m, err := c.look(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	w, err := decodeWant(req.Planned)
	if err != nil {
		return nil, err
	}
	u := undo{Size: w.size, Mounts: m.mounted(w.size)}
	if len(req.Undo) > 0 {
		if u, err = decodeUndo(req.Undo); err != nil {
			return nil, err
		}
	}
	if u.Pages == nil {
		u.Pages = map[string]uint64{}
	}
	for _, id := range w.nodes() {
		if p, ok := m.pool(id, w.size); ok {
			if _, have := u.Pages[strconv.Itoa(id)]; !have {
				u.Pages[strconv.Itoa(id)] = p.total
			}
		}
	}
	if w.mount != "" && len(m.mounted(w.size)) == 0 && !slices.Contains(u.Ours, w.mount) {
		u.Ours = append(u.Ours, w.mount)
		exists, err := isDir(ctx, req.Host.Conn(), w.mount)
		if err != nil {
			return nil, err
		}
		if !exists {
			u.Absent = append(u.Absent, w.mount)
		}
	}
	if u.Boot, err = w.found(ctx, req, u.Boot); err != nil {
		return nil, err
	}
	return json.Marshal(u)
}

func isDir(ctx context.Context, conn providers.Conn, path string) (bool, error) {
	_, err := conn.Run(ctx, providers.Cmd{Args: []string{"test", "-d", path}})
	var exit *providers.ExitError
	if errors.As(err, &exit) {
		return false, nil
	}
	return err == nil, err
}

// Apply sets the counts and mounts, or puts back what was found.
func (h Hugepages) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	c, err := poolsOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return providers.ApplyResult{}, err
	}
	defer c.changed()
	c.changed() // somebody else may have changed it since it was read for the plan
	m, err := c.look(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	u, err := decodeUndo(req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	// What is begun is finished or rolled back, whatever becomes of the context.
	ctx = context.WithoutCancel(ctx)
	if req.Planned.IsNull() {
		return providers.ApplyResult{New: req.Planned}, h.restore(ctx, req, m, u)
	}
	w, err := decodeWant(req.Planned)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if err := h.converge(ctx, req, m, w, u); err != nil {
		return providers.ApplyResult{}, err
	}
	return providers.ApplyResult{New: req.Planned}, nil
}
