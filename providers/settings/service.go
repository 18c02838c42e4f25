package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
	"plumb/providers/internal/marked"
)

// Service is host_service: whether a unit of systemd runs, and whether it starts at boot.
type Service struct{}

var (
	_ providers.Resource = Service{}
	_ providers.Preparer = Service{}
	_ providers.Planner  = Service{}
	_ providers.Claimer  = Service{}
)

// Schema is constant.
func (Service) Schema() *schema.Resource {
	return &schema.Resource{
		Type:        "host_service",
		Description: "A unit of systemd (systemctl(1)): whether it runs and whether it is started at boot. Both are put back as they were found by destroy.",
		Example: `resource "host_service" "irqbalance" {
  name    = "irqbalance"
  state   = "stopped"
  enabled = false
}`,
		Setting: true,
		After:   []string{"host_package", "host_file"},
		Block: schema.Block{Attributes: map[string]*schema.Attribute{
			"name": {Type: cty.String, Required: true, Cost: schema.Replace, Canonical: canonicalUnit,
				Description: "Name of the unit: irqbalance, chrony.service, getty@tty1.service. Without a suffix it is a service."},
			"state": {Type: cty.String, Optional: true, Default: cty.StringVal("running"), OneOf: []string{"running", "stopped"}, Cost: schema.ServiceRestart,
				Description: "running or stopped."},
			"enabled": optional(cty.Bool, schema.Live, nil, "Whether it is started at boot. Unset: left as it is."),
			"restart_on": {Type: cty.List(cty.String), Optional: true, Default: cty.ListValEmpty(cty.String), Cost: schema.ServiceRestart,
				Description: "Anything whose change restarts it while it runs: [host_file.conf.sha256]."},
			"timeout": {Type: cty.Number, Optional: true, Default: cty.NumberIntVal(90), Validate: schema.Whole(1, 3600),
				Description: "Seconds that it may take to start or to stop, 1 to 3600. systemd's own limit is 90 (DefaultTimeoutStartSec of systemd-system.conf(5))."},
		}},
	}
}

// service is what an instance wants.
type service struct {
	name    string
	run     bool
	enabled *bool
	limit   time.Duration
}

func newService(v cty.Value) (service, error) {
	name, err := unitName(attr.Text(v, "name"))
	s := service{name: name, run: attr.Text(v, "state") == "running", limit: time.Duration(attr.Number(v, "timeout", 90)) * time.Second}
	if e := v.GetAttr("enabled"); e.IsKnown() && !e.IsNull() {
		on := e.True()
		s.enabled = &on
	}
	return s, err
}

// Read reports whether the unit runs and is enabled.
func (Service) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	s, err := newService(req.Prior)
	if err != nil {
		return providers.ReadResult{}, err
	}
	if req.Host == nil {
		return providers.ReadResult{}, errNoHost
	}
	if f, err := req.Host.Facts(ctx); err != nil || !f.Systemd {
		return providers.ReadResult{Current: req.Prior}, err // said by Plan
	}
	u, err := find(ctx, req.Host, s.name)
	if err != nil {
		return providers.ReadResult{}, err
	}
	now := map[string]cty.Value{"state": cty.StringVal("stopped")}
	if u.running() {
		now["state"] = cty.StringVal("running")
	}
	if s.enabled != nil {
		now["enabled"] = cty.BoolVal(u.file == "enabled")
	}
	return providers.ReadResult{Current: with(req.Prior, now)}, nil
}

// Plan finds a unit that is not there or cannot become what is wanted.
func (Service) Plan(ctx context.Context, req providers.PlanRequest) (providers.PlanResult, error) {
	res, f, err := planned(ctx, req)
	if err != nil || f == nil || unchanged(req) || !req.Proposed.GetAttr("name").IsKnown() {
		return res, err
	}
	if !f.Systemd {
		res.Problems = append(res.Problems, providers.Problem{Host: req.Host.Name(), Summary: "No systemd",
			Detail: fmt.Sprintf("host_service manages units of systemd, and process 1 of %s is something else. Use host_command with the commands of its init system.", req.Host.Name())})
		return res, nil
	}
	s, err := newService(req.Proposed)
	if err != nil {
		return res, err
	}
	u, err := find(ctx, req.Host, s.name)
	if err != nil {
		return res, err
	}
	switch {
	case u.load == "masked" && (s.run || s.enabled != nil && *s.enabled):
		res.Problems = append(res.Problems, problem("name", "Unit is masked", "%s is masked on %s, so that nothing can start it. Somebody meant that: run systemctl unmask %s if it holds no more.",
			s.name, req.Host.Name(), s.name))
	case u.load == "not-found":
		p := problem("name", "No such unit", "%s has no unit %s now. If a host_package of this configuration brings it, all is well; else the apply will fail. See systemctl list-unit-files on that host.", req.Host.Name(), s.name)
		p.Warning = true
		res.Problems = append(res.Problems, p)
	case u.load == "error" || u.load == "bad-setting":
		res.Problems = append(res.Problems, problem("name", "Unit is broken", "systemd cannot load %s of %s (%s): see systemctl status %s.", s.name, req.Host.Name(), u.load, s.name))
	case s.enabled != nil && *s.enabled && u.file == "static":
		res.Problems = append(res.Problems, problem("enabled", "Unit cannot be enabled", "%s of %s is static: it has no [Install] section, and only other units start it. Leave enabled out.", s.name, req.Host.Name()))
	}
	if again, why := restarts(req.Prior, req.Proposed); again && s.run {
		res.Effects = append(res.Effects, fmt.Sprintf("restarts %s on %s: %s", s.name, req.Host.Name(), why))
	}
	return res, nil
}

// restarts says whether restart_on changes from one to the other. What is not known yet may.
func restarts(prior, now cty.Value) (again bool, why string) {
	if prior.IsNull() || prior.GetAttr("restart_on").RawEquals(now.GetAttr("restart_on")) {
		return false, ""
	}
	return true, "restart_on changes"
}

// Claims says that the unit is one instance's.
func (Service) Claims(_ context.Context, _ providers.Host, planned cty.Value) (providers.Claims, error) {
	if !planned.GetAttr("name").IsKnown() {
		return providers.Claims{}, nil
	}
	name, err := unitName(attr.Text(planned, "name"))
	return providers.Claims{Unique: []providers.Unique{{Scope: "unit of systemd", Value: name, Path: cty.GetAttrPath("name")}}}, err
}

// undoService is what was found.
type undoService struct {
	Running bool   `json:"running"`
	File    string `json:"file"` // UnitFileState
	// Restart is the invocation that a change of restart_on ends: while the unit still has it, the restart is to be done.
	Restart string `json:"restart,omitempty"`
}

// Prepare records whether it runs and is enabled, and notes that a restart is due.
func (Service) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	u, err := recorded[undoService](req.Undo)
	if err != nil {
		return nil, err
	}
	s, err := newService(req.Planned)
	if err != nil {
		return nil, err
	}
	now, err := ask(ctx, req.Host, s.name)
	if err != nil {
		return nil, err
	}
	if len(req.Undo) == 0 {
		u = undoService{Running: now.running(), File: now.file}
	}
	if again, _ := restarts(req.Prior, req.Planned); again {
		u.Restart = now.invocation
	}
	return json.Marshal(u)
}

// Apply starts, stops, enables, disables and restarts, or puts back what was found.
func (Service) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	ctx, err := begin(ctx, req)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	all, err := unitsOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	defer all.changed()
	u, err := recorded[undoService](req.Undo)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if req.Planned.IsNull() {
		s, err := newService(req.Prior)
		if err != nil {
			return providers.ApplyResult{}, err
		}
		return providers.ApplyResult{New: req.Planned}, s.restore(ctx, req.Host, u)
	}
	s, err := newService(req.Planned)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	if s.enabled == nil && !req.Prior.IsNull() && !req.Prior.GetAttr("enabled").IsNull() {
		s.enabled = enabledOf(u.File) // managed no more: back to what was found
	}
	return providers.ApplyResult{New: req.Planned}, s.converge(ctx, req.Host, u.Restart)
}

// enabledOf is what a UnitFileState says; nil for one that enable and disable do not reach.
func enabledOf(state string) *bool {
	on := state == "enabled"
	if !on && state != "disabled" {
		return nil
	}
	return &on
}

func (s service) restore(ctx context.Context, h providers.Host, u undoService) error {
	now, err := ask(ctx, h, s.name)
	if err != nil {
		return err
	}
	if now.load == "not-found" || now.load == "masked" {
		return nil // it went with its package, or somebody forbade it
	}
	s.run = u.Running
	if s.enabled != nil {
		s.enabled = enabledOf(u.File)
	}
	return s.converge(ctx, h, "")
}

// converge makes the unit as wanted, and restarts it when it still is the invocation that has to go.
func (s service) converge(ctx context.Context, h providers.Host, restart string) error {
	now, err := ask(ctx, h, s.name)
	if err != nil {
		return err
	}
	switch {
	case now.load == "not-found":
		return fmt.Errorf("unit %s: there is none of that name", s.name)
	case now.load == "masked":
		return fmt.Errorf("unit %s is masked: run systemctl unmask %s if that holds no more", s.name, s.name)
	}
	if s.enabled != nil && *s.enabled != (now.file == "enabled") {
		verb := map[bool]string{true: "enable", false: "disable"}[*s.enabled]
		if _, err := run(ctx, h, "systemctl", verb, "--", s.name); err != nil {
			return fmt.Errorf("%s unit %s: %w", verb, s.name, err)
		}
	}
	verb := ""
	switch {
	case s.run && now.running() && restart != "" && restart == now.invocation:
		verb = "restart"
	case s.run && !now.running():
		verb = "start"
	case !s.run && now.active != "inactive" && now.active != "failed":
		verb = "stop"
	}
	if verb != "" {
		_, err := h.Conn().Run(ctx, providers.Cmd{Args: []string{"systemctl", verb, "--", s.name}, Timeout: s.limit})
		if err != nil {
			return s.explain(ctx, h, fmt.Errorf("%s unit %s: %w", verb, s.name, err))
		}
	}
	return s.await(ctx, h)
}

// await waits until the unit is what it should be.
func (s service) await(ctx context.Context, h providers.Host) error {
	var now unit
	err := marked.Poll(ctx, s.limit, func() (done bool, err error) {
		now, err = ask(ctx, h, s.name)
		switch {
		case err != nil:
			return false, err
		case s.run && now.active == "failed", s.run && now.active == "inactive":
			return false, errEnded
		case s.run:
			return now.active == "active", nil
		}
		return now.active == "inactive" || now.active == "failed", nil
	})
	switch want := map[bool]string{true: "active", false: "inactive"}[s.run]; {
	case errors.Is(err, errEnded):
		return s.explain(ctx, h, fmt.Errorf("unit %s was started and is %s again (%s, result %s). One that does its work and ends (Type=oneshot without RemainAfterExit) cannot be kept running: use host_command",
			s.name, now.active, now.sub, now.result))
	case errors.Is(err, marked.ErrLimit):
		return s.explain(ctx, h, fmt.Errorf("unit %s is %s (%s) after %s; want %s", s.name, now.active, now.sub, s.limit, want))
	default:
		if err != nil {
			return err
		}
	}
	if s.enabled != nil && *s.enabled != (now.file == "enabled") {
		return fmt.Errorf("unit %s: UnitFileState is %q where enabled = %v was asked for", s.name, now.file, *s.enabled)
	}
	return nil
}

var errEnded = errors.New("ended")

// explain adds the last lines of the unit's journal.
func (s service) explain(ctx context.Context, h providers.Host, err error) error {
	out, logErr := run(ctx, h, "journalctl", "--no-pager", "--output=cat", "--lines=10", "--unit="+s.name)
	if logErr != nil || strings.TrimSpace(out) == "" {
		return err // the journal may be off: what is wrong was said
	}
	return fmt.Errorf("%w\nIts journal ends with:\n%s", err, lastLines(out, 10))
}
