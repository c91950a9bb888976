// Package inject turns the holdfast.dev annotations of a pod into a pod with an
// agent beside its app.
//
// # The way of a pod
//
//	annotations ──Parse──▶ Request ──Mutate──▶ pod with init, agent, volumes, variables
//
// [Parse] reads and judges everything at once and changes nothing. [Mutate]
// cannot fail: what it needs was judged before. Both are pure functions of
// their arguments; [NewHandler] puts them behind an admission request. Between
// the two it has the [Owner] of the pod looked up where a handoff depends on it,
// which is all that is ever asked of the cluster.
//
// # What holds for every pod
//
//   - Never silently unprotected: a key that is unknown, badly valued, or not
//     supported yet refuses the pod. Without a holdfast.dev key nothing is done.
//   - Additive: what the user wrote stays as it is, fields that this program's
//     Kubernetes version does not know included. The app's containers get one
//     mount and two variables.
//   - Idempotent: a pod that has an agent already gets it put right, not a
//     second one.
//
// It takes no lock.
package inject

//go:generate go run ./annotationdocs ../../docs/annotations.md
