// Package plumb is a map of this repository for those who read it the first time; it holds no code.
//
// A run goes through the rooms in one direction:
//
//		files -> lang/config -> lang/eval -> stages/plan -> stages/apply -> stages/bench -> stages/report
//		                                        |  providers (Read, Plan)  |  providers (Apply)  |  providers (Generate, Count)
//
//	  - cmd/plumb is the command line: main.go and one file per verb.
//	  - lang is the configuration language: files in, evaluated instances out. It does no I/O but reading files.
//	  - providers is everything that touches a host or a daemon, behind the contract in providers/provider.go.
//	  - stages is what happens in time: plan, apply, bench, report, and the graph and state that they share.
//	  - modules and examples are HCL. Each example is also a test.
//
// Read docs/architecture.md next, then docs/adding-a-resource.md. The rules for who may import whom are in
// imports_test.go, as a test.
package plumb
