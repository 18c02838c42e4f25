// Package openflow reads OpenFlow flows in the text form of ovs-ofctl(8) and ovs-fields(7), brings them into one canonical
// form, and compares sets of them by meaning: aliases, masks, hexadecimal and decimal, order of match fields, shorthand
// such as tcp, port names, and the action forms of the different OpenFlow versions are all one. It is pure.
//
// What it does not know it keeps as it stands, so that two flows that it calls equal are equal; two that it calls different
// may still mean the same, which only Open vSwitch can tell (ovs-ofctl diff-flows).
//
// Start reading at Parse.
package openflow
