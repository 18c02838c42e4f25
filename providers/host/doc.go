// Package host is what a machine itself offers: how a host block is opened, its facts, its hugepages, the CPU time that was used while
// something was measured, and the fingerprint that proves that a destroy brought everything back.
//
// Reading is one round trip wherever it can be; parsing is pure and apart from it.
package host
