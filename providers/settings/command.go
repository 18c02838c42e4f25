package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// Command is host_command: the way out for what no other type does.
type Command struct{}

var (
	_ providers.Resource = Command{}
	_ providers.Preparer = Command{}
	_ providers.Planner  = Command{}
)

// Schema is constant.
func (Command) Schema() *schema.Resource {
	argv := func(description string) *schema.Attribute {
		return optional(cty.List(cty.String), schema.Live, validArgv, description)
	}
	environment := func(v cty.Value) error {
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(k.AsString()) {
				return fmt.Errorf("%q is not the name of a variable", k.AsString())
			}
			if !e.IsKnown() || e.IsNull() {
				continue
			}
			if err := noNUL(e); err != nil {
				return fmt.Errorf("variable %s: %w", k.AsString(), err)
			}
		}
		return nil
	}
	return &schema.Resource{
		Type: "host_command",
		Description: "A command of one's own, for what no other type does. check says whether it is done, do does it, undo takes it back on destroy, unless check said before the first do that it was done. " +
			"Commands are lists of arguments that no shell looks at. With shell = true the first element is a script and the others are its $1, $2, ...: write values of the configuration there, not into the script, " +
			"where they would be read as shell.",
		Example: `resource "host_command" "ksm" {
  check = ["grep", "-qx", "0", "/sys/kernel/mm/ksm/run"]
  shell = true
  do    = ["echo \"$1\" >/sys/kernel/mm/ksm/run", "0"]
  undo  = ["echo \"$1\" >/sys/kernel/mm/ksm/run", "1"]
}`,
		Setting: true,
		After:   []string{"host_package", "host_file", "host_service", "host_mount", "host_module", "host_sysctl"},
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"do":    {Type: cty.List(cty.String), Required: true, Validate: validArgv, Description: "Command that does it. It may run again after a run of Plumb that was cut off, and after a reboot."},
			"check": argv("Command that exits with 0 when it is done, with 1 to 125 when it is not. It runs in every plan and must change nothing. With shell it is a script, too."),
			"creates": optional(cty.String, schema.Live, absolute,
				"Instead of check: a path that is there when it is done."),
			"undo":  argv("Command that takes it back. Without it destroy does nothing. Without check and creates it also runs after a do that failed or was cut off."),
			"shell": {Type: cty.Bool, Optional: true, Default: cty.False, Description: "Whether do, check and undo are scripts for sh -c, each with its arguments."},
			"triggers": {Type: cty.Map(cty.String), Optional: true, Default: cty.MapValEmpty(cty.String),
				Description: "Anything whose change runs do again."},
			"environment": {Type: cty.Map(cty.String), Optional: true, Default: cty.MapValEmpty(cty.String), Validate: environment,
				Description: "Variables of the environment for all three commands."},
			"sensitive_environment": {Type: cty.Map(cty.String), Optional: true, Default: cty.MapValEmpty(cty.String), Sensitive: true, Validate: environment,
				Description: "The same, for values that must not be shown."},
			"stdin": optional(cty.String, schema.Live, nil, "Standard input of do."),
			"timeout": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(60), Validate: schema.Whole(1, 86400),
				Description: "Seconds after which a command is killed and has failed, 1 to 86400."},
			"done": {Type: cty.Bool, Computed: true, Description: "Whether it is done, by check or creates. Without either it is done once do has succeeded."},
			"ran":  {Type: cty.Bool, Computed: true, Description: "True when the last change of do, its input or triggers has been carried out."},
		}},
	}
}

func validArgv(v cty.Value) error {
	for it := v.ElementIterator(); it.Next(); {
		i, e := it.Element()
		switch {
		case !e.IsKnown():
		case e.IsNull():
			return errors.New("an argument is null")
		case i.AsBigFloat().Sign() == 0 && e.AsString() == "":
			return errors.New("the first element, the command, is empty")
		default:
			if err := noNUL(e); err != nil {
				return err
			}
		}
	}
	if v.LengthInt() == 0 {
		return errors.New("there is no command in it")
	}
	return nil
}

// command is an instance on its host.
type command struct {
	obj  cty.Value
	host providers.Host
}

// cmd is one of the commands as Conn takes it; ok is false when it is not given.
func (c command) cmd(name string) (cmd providers.Cmd, ok bool) {
	args, _ := texts(c.obj, name)
	if len(args) == 0 {
		return cmd, false
	}
	if attr.Truth(c.obj, "shell", false) {
		args = append([]string{"sh", "-c", args[0], "plumb-command"}, args[1:]...)
	}
	cmd = providers.Cmd{Args: args, Timeout: time.Duration(attr.Number(c.obj, "timeout", 60)) * time.Second}
	for _, n := range []string{"environment", "sensitive_environment"} {
		vars, _ := pairs(c.obj, n)
		for k, v := range vars {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	slices.Sort(cmd.Env)
	if name == "do" {
		cmd.Stdin = []byte(attr.Text(c.obj, "stdin"))
	}
	return cmd, true
}

// done asks whether it is done. known is false without check and creates.
func (c command) done(ctx context.Context) (done, known bool, err error) {
	if creates := attr.Text(c.obj, "creates"); creates != "" {
		s, err := lookFile(ctx, c.host, creates)
		return err == nil && s.there, true, err
	}
	cmd, ok := c.cmd("check")
	if !ok {
		return false, false, nil
	}
	res, err := c.host.Conn().Run(ctx, cmd)
	status, exited := exited(err)
	switch {
	case err == nil:
		return true, true, nil
	case exited && status > 0 && status <= 125: // 126, 127: it could not be run; more: a signal
		return false, true, nil
	}
	return false, true, c.explain("check", res, err)
}

// run runs one of the commands.
func (c command) run(ctx context.Context, name string) error {
	cmd, ok := c.cmd(name)
	if !ok {
		return nil
	}
	res, err := c.host.Conn().Run(ctx, cmd)
	if err != nil {
		return c.explain(name, res, err)
	}
	return nil
}

// explain adds the last lines that a command printed.
func (c command) explain(name string, res providers.Result, err error) error {
	out := lastLines(strings.TrimSpace(string(res.Stdout))+"\n"+strings.TrimSpace(string(res.Stderr)), 20)
	if out != "" {
		return fmt.Errorf("%s failed: %w\nIt printed at the end:\n%s", name, err, out)
	}
	return fmt.Errorf("%s failed: %w", name, err)
}

// Read asks whether it is done.
func (Command) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	if req.Host == nil {
		return providers.ReadResult{}, errNoHost
	}
	done, known, err := command{req.Prior, req.Host}.done(ctx)
	if err != nil {
		return providers.ReadResult{}, err
	}
	if !known {
		done = attr.Truth(req.Prior, "done", false)
	}
	return providers.ReadResult{Current: with(req.Prior, map[string]cty.Value{"done": cty.BoolVal(done)})}, nil
}

// Plan says what will not be taken back, and what contradicts itself. It runs nothing that Read has not run.
func (Command) Plan(_ context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res := providers.PlanResult{Planned: with(req.Proposed, map[string]cty.Value{"done": cty.True, "ran": cty.True})}
	if req.Prior.IsNull() || !attr.Truth(req.Prior, "ran", false) || again(req.Prior, req.Proposed) {
		// Not known until it is over: so a run that is cut off leaves it open.
		res.Planned = with(res.Planned, map[string]cty.Value{"ran": cty.UnknownVal(cty.Bool)})
	}
	if !unset(req.Proposed.GetAttr("check")) && !unset(req.Proposed.GetAttr("creates")) {
		res.Problems = append(res.Problems, problem("creates", "Two checks", "check and creates both say whether it is done: give one of them."))
	}
	if req.Prior.IsNull() && unset(req.Proposed.GetAttr("undo")) {
		p := problem("do", "Will not be taken back", "Without undo, what do does stays after destroy. Give undo, or leave it so if there is nothing to take back.")
		p.Warning = true
		res.Problems = append(res.Problems, p)
	}
	if !req.Prior.IsNull() && again(req.Prior, req.Proposed) {
		res.Effects = append(res.Effects, "runs do again: the command or its triggers change")
	}
	return res, nil
}

// again says that do has to run anew although it was done.
func again(prior, now cty.Value) bool {
	return slices.ContainsFunc([]string{"do", "triggers", "stdin", "environment", "sensitive_environment", "shell"}, func(n string) bool {
		return !prior.GetAttr(n).RawEquals(now.GetAttr(n))
	})
}

// undoCommand is what was found.
type undoCommand struct {
	Before bool `json:"before"` // it was done before
	// Due says that do has to run although check may say that it is done: what it depends on changed. It holds until an apply has ended well.
	Due bool `json:"due,omitempty"`
}

// Prepare asks whether it was done before.
func (Command) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	u, err := recorded[undoCommand](req.Undo)
	if err != nil {
		return nil, err
	}
	if len(req.Undo) == 0 {
		if u.Before, _, err = (command{req.Planned, req.Host}).done(ctx); err != nil {
			return nil, err
		}
	}
	over := !req.Prior.IsNull() && attr.Truth(req.Prior, "ran", false)
	u.Due = u.Due && !over || !req.Prior.IsNull() && again(req.Prior, req.Planned)
	return json.Marshal(u)
}

// Apply does it, or takes it back. do runs when check says that it is not done, when something that it depends on changed, and where nothing tells.
func (Command) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	ctx, err := begin(ctx, req)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	u, err := recorded[undoCommand](req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if req.Planned.IsNull() {
		c := command{req.Prior, req.Host}
		if u.Before {
			return providers.ApplyResult{New: req.Planned}, nil
		}
		done, known, err := c.done(ctx)
		if err != nil || known && !done { // it was not done, or somebody took it back
			return providers.ApplyResult{New: req.Planned}, err
		}
		return providers.ApplyResult{New: req.Planned}, c.run(ctx, "undo")
	}
	c := command{req.Planned, req.Host}
	done, known, err := c.done(ctx)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if !known { // then the state knows
		done = !req.Prior.IsNull() && attr.Truth(req.Prior, "done", false) && !req.Reapply
	}
	if !done || u.Due {
		req.Log("runs " + c.spell("do"))
		if err := c.run(ctx, "do"); err != nil {
			return providers.ApplyResult{}, err
		}
		if done, known, err = c.done(ctx); err != nil {
			return providers.ApplyResult{}, err
		}
		if known && !done {
			return providers.ApplyResult{}, fmt.Errorf("do succeeded, and %s says that it is not done", map[bool]string{true: "creates", false: "check"}[attr.Text(req.Planned, "creates") != ""])
		}
	}
	return providers.ApplyResult{New: with(req.Planned, map[string]cty.Value{"done": cty.True, "ran": cty.True})}, nil
}

// spell is a command for people. Its arguments may be secret.
func (c command) spell(name string) string {
	args, _ := texts(c.obj, name)
	if attr.Truth(c.obj, "shell", false) || len(args) == 0 {
		return "the script of " + name
	}
	return args[0]
}
