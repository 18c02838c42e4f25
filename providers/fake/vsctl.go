package fake

import (
	"maps"
	"slices"
	"strings"

	"plumb/providers/internal/ovsdb"
	"plumb/providers/internal/ovsdb/ovsdbtest"
)

// vsctl is as much of ovs-vsctl as a person uses to meddle with a testbed: add-br, del-br, add-port, del-port, set, clear, remove, show, list-br,
// list-ports, get; several in one go with "--".
func vsctl(h *host, r *run) int {
	servers := h.byComm("ovsdb-server")
	if len(servers) == 0 {
		return r.fail(1, "ovs-vsctl: unix:/var/run/openvswitch/db.sock: database connection failed (No such file or directory)")
	}
	file := servers[0].Data["db"]
	db, err := h.getDB(file)
	if err != nil {
		return r.fail(1, "ovs-vsctl: %v", err)
	}
	find := func(table, name string) (string, ovsdb.Row) {
		for id, row := range db.Rows(table) {
			if ovsdb.String(row["name"]) == name || table == "Open_vSwitch" && name == "." {
				return id, row
			}
		}
		return "", nil
	}
	var ops []ovsdb.Op
	for _, words := range commands(r.args[1:]) {
		var fault string
		switch {
		case len(words) == 0:
			continue
		case words[0] == "show":
			show(db, r)
			continue
		case words[0] == "init":
			continue
		case words[0] == "list-br" || words[0] == "list-ports" && len(words) == 2:
			table := map[bool]string{true: "Bridge", false: "Port"}[words[0] == "list-br"]
			var names []string
			for id, row := range db.Rows(table) {
				name := ovsdb.String(row["name"])
				if table == "Port" {
					_, b := find("Bridge", words[1])
					if !slices.Contains(ovsdb.IDs(b["ports"]), id) || name == words[1] {
						continue
					}
				}
				names = append(names, name)
			}
			slices.Sort(names)
			for _, n := range names {
				r.printf("%s\n", n)
			}
			continue
		case words[0] == "get" && len(words) == 4:
			_, row := find(words[1], words[2])
			column, key, _ := strings.Cut(words[3], ":")
			if row == nil {
				return r.fail(1, "ovs-vsctl: no row \"%s\" in table %s", words[2], words[1])
			}
			if key != "" {
				r.printf("%q\n", ovsdb.StringMap(row[column])[key])
			} else if n, ok := ovsdb.Int(row[column]); ok {
				r.printf("%d\n", n)
			} else {
				r.printf("%q\n", ovsdb.String(row[column]))
			}
			continue
		default:
			var more []ovsdb.Op
			lenient := words[0] == "?"
			if lenient {
				words = words[1:]
			}
			more, fault = change(words, find)
			ops = append(ops, more...)
			if lenient && strings.HasPrefix(fault, "no ") {
				fault = ""
			}
		}
		if fault != "" {
			return r.fail(1, "ovs-vsctl: %s", fault)
		}
		// Each command sees what those before it did.
		if _, err := db.Transact(ops...); err != nil {
			return r.fail(1, "ovs-vsctl: transaction error: %v", err)
		}
		ops = nil
	}
	if _, err := db.Transact(ovsdb.Mutate("Open_vSwitch", []ovsdb.Mutation{ovsdb.Mutator("next_cfg", "+=", 1)})); err != nil {
		return r.fail(1, "ovs-vsctl: %v", err)
	}
	if err := h.putDB(file, db); err != nil {
		return r.fail(1, "ovs-vsctl: %v", err)
	}
	h.changed = append(h.changed, file)
	if err := h.settle(); err != nil {
		return r.fail(1, "ovs-vsctl: %v", err)
	}
	return 0
}

// show prints bridges and ports with what a person looks for.
func show(db *ovsdbtest.Database, r *run) {
	ports, ifaces := db.Rows("Port"), db.Rows("Interface")
	named := func(rows map[string]ovsdb.Row, ids []string) []string {
		slices.SortFunc(ids, func(a, b string) int {
			return strings.Compare(ovsdb.String(rows[a]["name"]), ovsdb.String(rows[b]["name"]))
		})
		return ids
	}
	bridges := db.Rows("Bridge")
	for id := range db.Rows("Open_vSwitch") {
		r.printf("%s\n", id)
	}
	for _, id := range named(bridges, slices.Collect(maps.Keys(bridges))) {
		r.printf("    Bridge %s\n", ovsdb.String(bridges[id]["name"]))
		for _, col := range []string{"fail_mode", "datapath_type"} {
			if v := ovsdb.String(bridges[id][col]); v != "" {
				r.printf("        %s: %s\n", col, v)
			}
		}
		for _, port := range named(ports, ovsdb.IDs(bridges[id]["ports"])) {
			r.printf("        Port %s\n", ovsdb.String(ports[port]["name"]))
			if tag, ok := ovsdb.Int(ports[port]["tag"]); ok {
				r.printf("            tag: %d\n", tag)
			}
			if trunks := ovsdb.Ints(ports[port]["trunks"]); len(trunks) > 0 {
				r.printf("            trunks: %v\n", trunks)
			}
			for _, i := range ovsdb.IDs(ports[port]["interfaces"]) {
				r.printf("            Interface %s\n", ovsdb.String(ifaces[i]["name"]))
				for _, col := range []string{"type", "error"} {
					if v := ovsdb.String(ifaces[i][col]); v != "" {
						r.printf("                %s: %s\n", col, v)
					}
				}
				if o := ovsdb.StringMap(ifaces[i]["options"]); len(o) > 0 {
					r.printf("                options: %v\n", o)
				}
			}
		}
	}
}

// commands splits at "--" and drops the options. A command with --if-exists becomes one that starts with "?".
func commands(args []string) [][]string {
	out := [][]string{nil}
	for _, a := range args {
		switch {
		case a == "--":
			out = append(out, nil)
		case a == "--if-exists":
			out[len(out)-1] = append(out[len(out)-1], "?")
		case strings.HasPrefix(a, "--"):
		default:
			out[len(out)-1] = append(out[len(out)-1], a)
		}
	}
	return out
}

func change(words []string, find func(table, name string) (string, ovsdb.Row)) (ops []ovsdb.Op, fault string) {
	switch {
	case words[0] == "add-br" && len(words) == 2:
		return []ovsdb.Op{
			ovsdb.Insert("Interface", ovsdb.Row{"name": words[1], "type": "internal"}).Named("i"),
			ovsdb.Insert("Port", ovsdb.Row{"name": words[1], "interfaces": ovsdb.NamedUUID("i")}).Named("p"),
			ovsdb.Insert("Bridge", ovsdb.Row{"name": words[1], "ports": ovsdb.NamedUUID("p")}).Named("b"),
			ovsdb.Mutate("Open_vSwitch", []ovsdb.Mutation{ovsdb.Mutator("bridges", "insert", ovsdb.NamedUUID("b"))})}, ""
	case words[0] == "del-br" && len(words) == 2:
		id, _ := find("Bridge", words[1])
		if id == "" {
			return nil, "no bridge named " + words[1]
		}
		return []ovsdb.Op{ovsdb.Mutate("Open_vSwitch", []ovsdb.Mutation{ovsdb.Mutator("bridges", "delete", ovsdb.UUID(id))})}, ""
	case words[0] == "add-port" && len(words) >= 3:
		id, _ := find("Bridge", words[1])
		if id == "" {
			return nil, "no bridge named " + words[1]
		}
		return []ovsdb.Op{
			ovsdb.Insert("Interface", ovsdb.Row{"name": words[2]}).Named("i"),
			ovsdb.Insert("Port", ovsdb.Row{"name": words[2], "interfaces": ovsdb.NamedUUID("i")}).Named("p"),
			ovsdb.Mutate("Bridge", []ovsdb.Mutation{ovsdb.Mutator("ports", "insert", ovsdb.NamedUUID("p"))}, ovsdb.ByID(id))}, ""
	case words[0] == "del-port" && len(words) >= 2:
		id, _ := find("Port", words[len(words)-1])
		if id == "" {
			return nil, "no port named " + words[len(words)-1]
		}
		return []ovsdb.Op{ovsdb.Mutate("Bridge", []ovsdb.Mutation{ovsdb.Mutator("ports", "delete", ovsdb.UUID(id))})}, ""
	case (words[0] == "set" || words[0] == "clear" || words[0] == "remove") && len(words) > 3:
		table := words[1]
		if strings.EqualFold(table, "open_vswitch") || table == "Open" {
			table = "Open_vSwitch"
		}
		for _, t := range []string{"Bridge", "Port", "Interface"} {
			if strings.EqualFold(table, t) {
				table = t
			}
		}
		id, row := find(table, words[2])
		if id == "" {
			return nil, "no row \"" + words[2] + "\" in table " + table
		}
		return columns(words, table, id, row), ""
	}
	return nil, "the fake host does not know '" + strings.Join(words, " ") + "'"
}

func columns(words []string, table, id string, row ovsdb.Row) []ovsdb.Op {
	mutate := func(m ...ovsdb.Mutation) ovsdb.Op { return ovsdb.Mutate(table, m, ovsdb.ByID(id)) }
	var ops []ovsdb.Op
	switch words[0] {
	case "clear":
		for _, c := range words[3:] {
			ops = append(ops, ovsdb.Update(table, ovsdb.Row{c: ovsdb.Set[any]()}, ovsdb.ByID(id)))
		}
	case "remove":
		for _, k := range words[4:] {
			ops = append(ops, mutate(ovsdb.Mutator(words[3], "delete", ovsdb.Set(k))))
		}
	case "set":
		for _, w := range words[3:] {
			name, value, _ := strings.Cut(w, "=")
			value = strings.Trim(value, `"`)
			if column, key, ok := strings.Cut(name, ":"); ok {
				ops = append(ops, mutate(ovsdb.Mutator(column, "delete", ovsdb.Set(key)), ovsdb.Mutator(column, "insert", ovsdb.Map(map[string]string{key: value}))))
				continue
			}
			ops = append(ops, ovsdb.Update(table, ovsdb.Row{name: atomFor(row[name], name, value)}, ovsdb.ByID(id)))
		}
	}
	return ops
}

// atomFor makes a value of the kind that the column has.
func atomFor(have any, column, value string) any {
	if _, ok := have.(bool); ok {
		return value == "true"
	}
	_, isNumber := ovsdb.Int(have)
	if isNumber || slices.Contains([]string{"ofport_request", "mtu_request", "tag", "ofport"}, column) {
		n := 0
		for _, c := range value {
			n = n*10 + int(c-'0')
		}
		return n
	}
	if strings.Contains(value, ",") {
		return ovsdb.Set(strings.Split(value, ",")...)
	}
	return value
}
