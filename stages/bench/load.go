package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
)

// loadType stands for the Loader where generator types are recorded as open: no generator type can have the name of a nested block.
const loadType = loadBlock

// disturbance is one load block.
type disturbance struct {
	host   string
	config cty.Value // of the Loader's schema
	words  string
}

// disturbances reads the load blocks.
func disturbances(f *fields, loader *schema.Block) []disturbance {
	var out []disturbance
	v := f.block1(loadBlock)
	if isAbsent(v) {
		return nil
	}
	block := &f.block.Blocks[loadBlock].Block
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		in := &fields{v: e, block: block}
		f.fail(in.open(loadBlock))
		if f.hidden[loadBlock] {
			in.hide()
		}
		d := disturbance{host: in.str("host")}
		if d.host == "" {
			in.fail(errors.New("a load block does not say which host it disturbs"))
		}
		vals := map[string]cty.Value{}
		for name, ty := range loader.ImpliedType().AttributeTypes() {
			vals[name] = cty.NullVal(ty)
			switch {
			case loader.Attributes[name] != nil:
				vals[name] = in.get(name)
			case !isAbsent(in.block1(name)):
				vals[name] = in.block1(name)
			}
		}
		d.config = cty.ObjectVal(vals)
		var parts []string
		for _, r := range in.rows("") {
			parts = append(parts, r[0]+" "+r[1])
		}
		d.words = strings.Join(parts, ", ")
		f.fail(in.err)
		out = append(out, d)
	}
	return out
}

func isAbsent(v cty.Value) bool { return v == cty.NilVal || v.IsNull() }

// disturb starts the load blocks' loads, each recorded before it runs. stop ends those that run, with a context that outlives ctx; it is never nil
// and may be called once.
func (r *runner) disturb(ctx context.Context) (stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var errs []error
		for i := len(stops) - 1; i >= 0; i-- {
			errs = append(errs, stops[i]())
		}
		return errors.Join(errs...)
	}
	for i, d := range r.set.loads {
		host, err := r.bed.host(ctx, r.in, d.host)
		if err != nil {
			return stop, err
		}
		if err := r.in.Recorder.Opened(loadType, d.host); err != nil {
			return stop, fmt.Errorf("record that a load is started: %w", err)
		}
		closed := func() error {
			if err := r.in.Recorder.Closed(loadType, d.host); err != nil {
				return fmt.Errorf("record that a load has ended: %w", err)
			}
			return nil
		}
		r.step("disturbing %s: %s", d.host, d.words)
		end, err := r.in.Set.Loader.Start(ctx, host, providers.Mark{Testbed: r.in.Testbed, Address: fmt.Sprintf("%s.load[%d]", r.out.Addr, i)}, d.config)
		if err != nil { // it has left nothing behind
			return stop, errors.Join(fmt.Errorf("start the load on %s: %w", d.host, err), closed())
		}
		stops = append(stops, func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
			defer cancel()
			if err := end(ctx); err != nil { // stays recorded, for the next run to sweep
				return fmt.Errorf("end the load on %s: %w", d.host, err)
			}
			return closed()
		})
		r.note("Disturbed on purpose while it was measured: %s.", d.words)
	}
	return stop, nil
}
