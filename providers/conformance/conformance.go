// Package conformance is the suite that every resource type passes, on the fake host and on a real one: apply; an empty plan; drift is
// seen and mended; destroy restores; a second destroy does nothing; Plumb killed between any two calls; what is not ours stays untouched.
//
// It plays the engine's part in small: what it asks of a type, the engine asks too.
package conformance

import (
	"errors"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"plumb/providers"
)

// Case is one resource type on one kind of world.
type Case struct {
	Type providers.Resource
	// Open connects to the world, which stays the same within a test of t; it is called anew for each run of Plumb. nil: a hostless type. The suite
	// closes the host.
	Open func(t *testing.T) providers.Host
	// Config is what the configuration sets: attributes and blocks. What is left out is null or its default.
	Config map[string]cty.Value
	// Update is another configuration that can be reached without a replace; nil: there is none.
	Update map[string]cty.Value
	// Drift are changes behind Plumb's back, by name. Each must show in the next Read as gone or different, and the next Apply must mend it.
	Drift map[string]func(t *testing.T, h providers.Host)
	// Foreign makes an object of the same name that is not ours and returns how to remove it. nil: the type has no marks.
	Foreign func(t *testing.T, h providers.Host) (remove func())
	// Reboot is what the engine does after changes of a type that take effect with a reboot. nil: nothing.
	Reboot func(t *testing.T, h providers.Host)
	// Snapshot is the fingerprint of the world that a destroy must bring back. nil: nothing is compared.
	Snapshot func(t *testing.T, h providers.Host) []string
}

// Run runs the suite. Every subtest leaves the world as it was, or the test fails. With -short it is one life without accidents, for worlds that are slow.
func Run(t *testing.T, c Case) {
	t.Run("schema", func(t *testing.T) { checkSchema(t, c.Type.Schema()) })
	t.Run("life", func(t *testing.T) { life(t, c) })
	if testing.Short() {
		return
	}
	for _, at := range []string{"after Prepare", "after Apply"} {
		t.Run("killed "+at+" then apply", func(t *testing.T) { killed(t, c, at == "after Apply", true) })
		t.Run("killed "+at+" then destroy", func(t *testing.T) { killed(t, c, at == "after Apply", false) })
	}
	t.Run("cancelled", func(t *testing.T) { cancelled(t, c) })
	for name, drift := range c.Drift {
		t.Run("drift "+name, func(t *testing.T) { drifted(t, c, drift) })
	}
	if c.Foreign != nil {
		t.Run("foreign", func(t *testing.T) { foreign(t, c) })
	}
}

func life(t *testing.T, c Case) {
	w := begin(t, c)
	w.plumb(func(r *run) { r.apply(c.Config) })
	w.plumb(func(r *run) { r.read(); r.wantEmptyPlan(c.Config) })
	if c.Update != nil {
		w.plumb(func(r *run) { r.read(); r.apply(c.Update) })
		w.plumb(func(r *run) { r.read(); r.wantEmptyPlan(c.Update) })
		w.plumb(func(r *run) { r.read(); r.apply(c.Config); r.read(); r.wantEmptyPlan(c.Config) })
	}
	// Applied again for another's sake: the same object must come out.
	w.plumb(func(r *run) {
		r.read()
		r.reapply = true
		r.apply(c.Config)
		r.reapply = false
		r.read()
		r.wantEmptyPlan(c.Config)
	})
	w.plumb(func(r *run) { r.read(); r.destroy() })
	w.plumb(func(r *run) { r.destroyAgain() })
	w.end()
}

func killed(t *testing.T, c Case, applied, again bool) {
	w := begin(t, c)
	w.plumb(func(r *run) {
		planned := r.plan(c.Config)
		r.prepare(planned)
		if applied {
			if _, err := r.do(planned); err != nil {
				t.Fatalf("apply: %v", err)
			}
		}
		r.forget(planned) // what the engine kept: the intent, with the planned object and the undo
	})
	w.plumb(func(r *run) {
		r.read()
		if again {
			r.apply(c.Config)
			r.read()
			r.wantEmptyPlan(c.Config)
		}
		r.destroy()
	})
	w.end()
}

func drifted(t *testing.T, c Case, drift func(*testing.T, providers.Host)) {
	w := begin(t, c)
	w.plumb(func(r *run) { r.apply(c.Config) })
	w.plumb(func(r *run) { drift(t, r.host) })
	w.plumb(func(r *run) {
		was := r.world.state
		r.read()
		if r.world.state.RawEquals(was) && r.plan(c.Config).RawEquals(was) {
			t.Errorf("the change was not seen: Read still says %#v", was)
		}
		r.apply(c.Config)
	})
	w.plumb(func(r *run) { r.read(); r.wantEmptyPlan(c.Config) })
	w.plumb(func(r *run) { drift(t, r.host) })
	w.plumb(func(r *run) { r.read(); r.destroy() })
	w.end()
}

func foreign(t *testing.T, c Case) {
	w := begin(t, c)
	var remove func()
	w.plumb(func(r *run) { remove = c.Foreign(t, r.host) })
	before := w.look()
	w.plumb(func(r *run) {
		planned, err := r.tryPlan(c.Config)
		if err == nil {
			r.prepare(planned)
			_, err = r.do(planned)
		}
		if !errors.Is(err, providers.ErrForeign) {
			t.Errorf("creating over a foreign object: %v; want an error that wraps providers.ErrForeign", err)
		}
	})
	w.wantSame(before, "a foreign object was touched by apply")
	w.plumb(func(r *run) {
		// As after a kill between intent and apply: the state says that there may be something of ours.
		r.forget(r.proposed(c.Config))
		r.read()
		if !r.world.state.IsNull() {
			t.Errorf("Read takes a foreign object for ours: %#v", r.world.state)
		}
		r.destroyAgain()
	})
	w.wantSame(before, "a foreign object was touched by destroy")
	remove()
	w.state = cty.NullVal(w.typ)
	w.end()
}
