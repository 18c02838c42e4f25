package ovs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"plumb/lang/schema"
	"plumb/providers"
	"plumb/providers/internal/attr"
)

// switchType is ovs_switch.
type switchType struct{}

var (
	_ providers.Resource = switchType{}
	_ providers.Preparer = switchType{}
	_ providers.Planner  = switchType{}
	_ providers.Claimer  = switchType{}
	_ providers.Observer = switchType{}
)

func (switchType) Schema() *schema.Resource { return switchSchema() }

// undo is what destroy puts back.
type undo struct {
	Alternative *alternative       `json:"alternative,omitempty"`
	Server      bool               `json:"ovsdb_server"`
	Daemon      bool               `json:"ovs_vswitchd"`
	Database    bool               `json:"database"`
	Made        []string           `json:"made,omitempty"` // files and folders that were not there
	OtherConfig map[string]*string `json:"other_config,omitempty"`
}

// switchKeys is all of other_config that the object manages.
func switchKeys(obj cty.Value) map[string]string {
	if obj.IsNull() {
		return map[string]string{}
	}
	keys := stringMap(obj.GetAttr("other_config"))
	keysOf(obj, datapathOptions(), keys)
	if d := obj.GetAttr("dpdk"); !d.IsNull() {
		keysOf(d, append(startOptions(), pmdOptions()...), keys)
	}
	return keys
}

// needsRestart says whether a change of the key takes effect only when ovs-vswitchd starts. Keys that are not known do.
func needsRestart(key string) bool {
	for _, o := range slices.Concat(startOptions(), pmdOptions(), datapathOptions()) {
		if o.key == key {
			return o.cost >= schema.ServiceRestart
		}
	}
	return true
}

func (t switchType) Read(ctx context.Context, req providers.ReadRequest) (providers.ReadResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ReadResult{}, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return providers.ReadResult{}, err
	}
	return providers.ReadResult{Current: readSwitch(w, req.Prior)}, nil
}

// readSwitch is the switch as it is. While it does not run, its settings are shown as recorded: they cannot be read.
func readSwitch(w *world, prior cty.Value) cty.Value {
	attrs := attrsOf(prior)
	attrs["running"] = cty.BoolVal(w.server && w.daemon && w.root.external[keyRestart] == "")
	if w.server {
		readInto(attrs, prior, datapathOptions(), w.root.otherConfig)
		attrs["other_config"] = readMap(prior.GetAttr("other_config"), w.root.otherConfig)
		if d := prior.GetAttr("dpdk"); !d.IsNull() {
			inner := attrsOf(d)
			readInto(inner, d, append(startOptions(), pmdOptions()...), w.root.otherConfig)
			attrs["dpdk"] = cty.ObjectVal(inner)
		}
	}
	if w.daemon {
		maps.Copy(attrs, reported(w))
	} else if attrs["dpdk_initialized"].IsNull() {
		attrs["dpdk_initialized"] = cty.False
	}
	return cty.ObjectVal(attrs)
}

// reported is what ovs-vswitchd says of itself.
func reported(w *world) map[string]cty.Value {
	return map[string]cty.Value{
		"dpdk_initialized": cty.BoolVal(w.root.dpdk),
		"ovs_version":      cty.StringVal(w.root.ovsVersion),
		"dpdk_version":     cty.StringVal(w.root.dpdkVersion),
		"datapath_types":   textList(w.root.datapathTypes),
		"iface_types":      textList(w.root.ifTypes),
	}
}

// Prepare notes which of the keys to be managed have which value now, what runs, and which build is chosen.
func (switchType) Prepare(ctx context.Context, req providers.ApplyRequest) (json.RawMessage, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	var u undo
	first := len(req.Undo) == 0
	if !first {
		if err := json.Unmarshal(req.Undo, &u); err != nil {
			return nil, fmt.Errorf("read what is to be put back: %w", err)
		}
	}
	if first {
		u.Server, u.Daemon = w.server, w.daemon
		u.Database = w.server
		if !w.server {
			if u.Database, err = s.dbExists(ctx); err != nil {
				return nil, err
			}
		}
		for _, path := range []string{runDir, logDir, daemonLog, logDir + "/ovsdb-server.log"} {
			there, err := s.test(ctx, "-e", path)
			if err != nil {
				return nil, err
			}
			if !there {
				u.Made = append(u.Made, path)
			}
		}
	}
	if u.Alternative == nil && !req.Planned.IsNull() && !req.Planned.GetAttr("dpdk").IsNull() {
		b, err := s.installed(ctx)
		if err != nil {
			return nil, err
		}
		if b.alternative.DPDK != "" && b.alternative.Value != b.alternative.DPDK {
			u.Alternative = &alternative{Auto: b.alternative.Auto, Value: b.alternative.Value}
		}
	}
	found := w.root.otherConfig
	if !w.server && u.Database {
		if found, err = s.storedConfig(ctx); err != nil {
			return nil, err
		}
	}
	if u.OtherConfig == nil {
		u.OtherConfig = map[string]*string{}
	}
	for k := range switchKeys(req.Planned) {
		if _, noted := u.OtherConfig[k]; noted {
			continue
		}
		u.OtherConfig[k] = nil
		if v, ok := found[k]; ok {
			u.OtherConfig[k] = &v
		}
	}
	return json.Marshal(u)
}

// storedConfig reads other_config from the database file of a server that does not run.
func (s *session) storedConfig(ctx context.Context) (map[string]string, error) {
	query := `["Open_vSwitch",{"op":"select","table":"Open_vSwitch","where":[],"columns":["other_config"]}]`
	res, err := s.host.Conn().Run(ctx, providers.Cmd{Args: []string{"ovsdb-tool", "query", dbFile, query}})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dbFile, err)
	}
	var out []struct{ Rows []row }
	if err := json.Unmarshal(res.Stdout, &out); err != nil {
		return nil, fmt.Errorf("read %s: %w", dbFile, err)
	}
	if len(out) == 0 || len(out[0].Rows) == 0 {
		return map[string]string{}, nil
	}
	return out[0].Rows[0].dict("other_config"), nil
}

func (t switchType) Apply(ctx context.Context, req providers.ApplyRequest) (providers.ApplyResult, error) {
	s, err := sessionOf(ctx, req.Host)
	if err != nil {
		return providers.ApplyResult{}, err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	if req.Planned.IsNull() {
		if err := s.restore(ctx, req); err != nil {
			return providers.ApplyResult{}, err
		}
		return providers.ApplyResult{New: cty.NullVal(t.Schema().Block.ImpliedType())}, nil
	}
	err = s.converge(ctx, req)
	w, lookErr := s.look(context.WithoutCancel(ctx))
	if lookErr != nil {
		return providers.ApplyResult{}, errors.Join(err, lookErr)
	}
	if err != nil {
		return providers.ApplyResult{New: settled(readSwitch(w, req.Planned))}, err
	}
	attrs := attrsOf(req.Planned)
	for k, v := range reported(w) {
		attrs[k] = v
	}
	attrs["running"] = cty.True
	return providers.ApplyResult{New: cty.ObjectVal(attrs)}, nil
}

// settled replaces what is still unknown by null.
func settled(v cty.Value) cty.Value {
	return cty.UnknownAsNull(v)
}

// converge makes the switch as planned.
func (s *session) converge(ctx context.Context, req providers.ApplyRequest) error {
	wantDPDK := !req.Planned.GetAttr("dpdk").IsNull()
	if wantDPDK {
		if err := s.chooseDPDK(ctx, req); err != nil {
			return err
		}
	}
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	if !w.server {
		req.Log("starting ovsdb-server")
		if err := s.startServer(ctx); err != nil {
			return err
		}
		if w, err = s.look(ctx); err != nil {
			return err
		}
	}
	var u undo
	if len(req.Undo) > 0 {
		if err := json.Unmarshal(req.Undo, &u); err != nil {
			return fmt.Errorf("read what is to be put back: %w", err)
		}
	}
	set, remove := configChange(w.root.otherConfig, switchKeys(req.Prior), switchKeys(req.Planned), u.OtherConfig)
	mustRestart := w.daemon && (restarts(set, remove) || w.root.external[keyRestart] != "" || wantDPDK && !w.root.dpdk)
	if err := s.setConfig(ctx, w, set, remove, mustRestart); err != nil {
		return err
	}
	switch {
	case mustRestart:
		req.Log("restarting ovs-vswitchd")
		if err := s.restartDaemon(ctx); err != nil {
			return err
		}
	case !w.daemon:
		req.Log("starting ovs-vswitchd")
		if err := s.startDaemon(ctx); err != nil {
			return err
		}
	}
	if w, err = s.look(ctx); err != nil {
		return err
	}
	if wantDPDK && !w.root.dpdk && attr.Text(req.Planned.GetAttr("dpdk"), "init") == "true" {
		return fmt.Errorf("DPDK did not start in ovs-vswitchd on %s%s", s.host.Name(), s.logTail(ctx, 10))
	}
	return nil
}

// chooseDPDK makes the build with DPDK the one that is started.
func (s *session) chooseDPDK(ctx context.Context, req providers.ApplyRequest) error {
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	if w.daemon && w.root.dpdk {
		return nil
	}
	b, err := s.installed(ctx)
	if err != nil {
		return err
	}
	if b.alternative.DPDK != "" && b.alternative.Value != b.alternative.DPDK {
		req.Log("choosing the build with DPDK: " + b.alternative.DPDK)
		if err := s.choose(ctx, alternative{Value: b.alternative.DPDK}); err != nil {
			return fmt.Errorf("choose the build with DPDK: %w", err)
		}
	}
	return nil
}

// configChange compares other_config as it is with what is wanted. Keys that were managed and are not any more get the value that was
// found before Plumb came.
func configChange(have, prior, want map[string]string, found map[string]*string) (set map[string]string, remove []string) {
	set = map[string]string{}
	for k, v := range want {
		if old, ok := have[k]; !ok || old != v {
			set[k] = v
		}
	}
	for k := range prior {
		if _, ok := want[k]; ok {
			continue
		}
		old, there := have[k]
		if v := found[k]; v != nil {
			if !there || old != *v {
				set[k] = *v
			}
		} else if there {
			remove = append(remove, k)
		}
	}
	slices.Sort(remove)
	return set, remove
}

func restarts(set map[string]string, remove []string) bool {
	for k := range set {
		if needsRestart(k) {
			return true
		}
	}
	return slices.ContainsFunc(remove, needsRestart)
}

// setConfig writes other_config. A restart that has to follow is noted in the same transaction, so that it is made up for when Plumb
// is killed in between.
func (s *session) setConfig(ctx context.Context, w *world, set map[string]string, remove []string, restart bool) error {
	mutations := []any{}
	if len(set)+len(remove) > 0 {
		mutations = mapChange("other_config", set, remove)
	}
	if restart && w.root.external[keyRestart] == "" {
		mutations = append(mutations, mapChange("external_ids", map[string]string{keyRestart: "true"}, nil)...)
	}
	if len(mutations) == 0 {
		return nil
	}
	change := op{"op": "mutate", "table": "Open_vSwitch", "where": []any{}, "mutations": mutations}
	if restart { // whatever the old daemon makes of it is of no interest
		_, err := s.transact(ctx, change)
		s.changed()
		return err
	}
	return s.commit(ctx, change)
}

func (s *session) restartDaemon(ctx context.Context) error {
	if err := s.stopDaemon(ctx, false); err != nil {
		return err
	}
	return s.startDaemon(ctx)
}

// restartDone takes the note of setConfig back.
func (s *session) restartDone(ctx context.Context) error {
	_, err := s.transact(ctx, op{"op": "mutate", "table": "Open_vSwitch", "where": []any{}, "mutations": mapChange("external_ids", nil, []string{keyRestart})})
	s.changed()
	return err
}

// restore puts back what Prepare noted.
func (s *session) restore(ctx context.Context, req providers.ApplyRequest) error {
	var u undo
	if len(req.Undo) == 0 {
		return nil // nothing was begun
	}
	if err := json.Unmarshal(req.Undo, &u); err != nil {
		return fmt.Errorf("read what is to be put back: %w", err)
	}
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	if !u.Daemon && len(w.bridges) > 0 { // before anything is changed
		names := slices.Sorted(maps.Keys(w.bridges))
		return fmt.Errorf("stop Open vSwitch on %s, which did not run before: it still has bridges that are not ours: %s. Remove them (ovs-vsctl del-br) and run destroy again: %w",
			s.host.Name(), strings.Join(names, ", "), providers.ErrForeign)
	}
	set, remove := map[string]string{}, []string(nil)
	for k, v := range u.OtherConfig {
		old, there := w.root.otherConfig[k]
		switch {
		case v == nil && there:
			remove = append(remove, k)
		case v != nil && (!there || old != *v):
			set[k] = *v
		}
	}
	rebuilt := false
	if u.Alternative != nil {
		b, err := s.installed(ctx)
		if err != nil {
			return err
		}
		if b.alternative.Value != u.Alternative.Value || b.alternative.Auto != u.Alternative.Auto {
			rebuilt = b.alternative.Value != u.Alternative.Value
			req.Log("putting the chosen build of ovs-vswitchd back")
			if err := s.choose(ctx, *u.Alternative); err != nil {
				return fmt.Errorf("choose the build as it was: %w", err)
			}
		}
	}
	if w.server && u.Database {
		again := w.daemon && u.Daemon && (restarts(set, remove) || rebuilt || w.root.external[keyRestart] != "")
		if err := s.setConfig(ctx, w, set, remove, again || !u.Daemon); err != nil {
			return err
		}
		if again {
			req.Log("restarting ovs-vswitchd with the settings found")
			if err := s.restartDaemon(ctx); err != nil {
				return err
			}
		}
	}
	return s.stopAgain(ctx, req, w, u)
}

// stopAgain stops what did not run before and removes what was not there.
func (s *session) stopAgain(ctx context.Context, req providers.ApplyRequest, w *world, u undo) error {
	if u.Daemon {
		return nil
	}
	req.Log("stopping ovs-vswitchd")
	if err := s.stopDaemon(ctx, true); err != nil {
		return err
	}
	if w.server && u.Database {
		if err := s.restartDone(ctx); err != nil {
			return err
		}
	}
	if u.Server {
		return nil
	}
	req.Log("stopping ovsdb-server")
	if err := s.stopServer(ctx); err != nil {
		return err
	}
	if !u.Database {
		if err := s.removeDatabase(ctx); err != nil {
			return err
		}
	}
	return s.removeMade(ctx, u.Made)
}

// removeDatabase removes the file and its lock, where they really are: Debian has symbolic links for both in /etc.
func (s *session) removeDatabase(ctx context.Context) error {
	args := []string{"rm", "-f", "--"}
	for _, link := range []string{dbFile, dbLock(dbFile)} {
		res, err := s.host.Conn().Run(ctx, providers.Cmd{Args: []string{"readlink", "-m", link}})
		if err != nil {
			return fmt.Errorf("find %s: %w", link, err)
		}
		real := strings.TrimSpace(string(res.Stdout))
		args = append(args, real)
		if link == dbFile {
			args = append(args, dbLock(real))
		}
	}
	return s.run(ctx, "remove the database", 0, args...)
}

// dbLock is the lock file beside a database file.
func dbLock(db string) string { return path.Join(path.Dir(db), "."+path.Base(db)+".~lock~") }

// removeMade removes the folders and log files that were not there. Both daemons have ended.
func (s *session) removeMade(ctx context.Context, made []string) error {
	args := []string{"rm", "-rf", "--"}
	for _, path := range made {
		if path != logDir {
			args = append(args, path)
		}
	}
	if len(args) > 3 {
		if err := s.run(ctx, "remove what was not there before", 0, args...); err != nil {
			return err
		}
	}
	if slices.Contains(made, logDir) { // others may log there
		if there, err := s.test(ctx, "-d", logDir); err != nil || !there {
			return err
		}
		return s.run(ctx, "remove "+logDir, 0, "rmdir", "--ignore-fail-on-non-empty", logDir)
	}
	return nil
}
