// Package sweep runs traces × strategies × settings × devices × searches on any number of
// machines. A study in YAML becomes a [Plan], in which each row is a cell. Workers run one shard of
// the plan each and share nothing but a store of cells. [Plan.Merge] reads the results.
//
// There is no scheduler and no daemon. A cluster's own engine starts and restarts the workers. A
// shard is computed from the plan alone, a worker skips cells that the store has, and a worker that
// is killed loses only the cells that it was computing. docs/sweep.md is the manual.
package sweep
