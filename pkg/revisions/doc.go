// Package revisions knows which revision of its workload a ReplicaSet is, so that
// a lock goes from an older to a newer one and never back.
//
// # Twice
//
// When a pod is created, its ReplicaSet is looked up once ([NewLookup]) and the
// agent is told the number. But an undo gives an old ReplicaSet, whose pods may
// still be there, a new number. So the numbers of all ReplicaSets that have
// pods with an agent are published in Redis too ([Run]), where agents that
// wait read them.
//
// # What it costs
//
// One GET of metadata for a new pod of a Deployment. A watch of the metadata of
// injected pods by each replica of the program, and of that of all ReplicaSets by
// the leader; of each object what is not needed here is dropped before it is
// kept: 4000 ReplicaSets took 10 MB. One SET for each published ReplicaSet every
// two minutes.
//
// # When it fails
//
// Without Redis nothing is published, and it is tried until it works; agents go
// by the number that they were started with. Then only an undo of a revision
// that never became ready, while both pods exist, waits for a hand on one of
// them. Two leaders at one time do no harm: each publishes what the API server
// says.
package revisions
