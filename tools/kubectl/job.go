package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
)

// check applies the rules of the API server that concern Indexed Jobs, and refuses a Job that the stand-in cannot run.
func check(job *batch.Job) error {
	s := &job.Spec
	pod := &s.Template.Spec
	switch {
	case job.APIVersion != "batch/v1" || job.Kind != "Job" || job.Name == "":
		return errors.New("want a named Job of batch/v1")
	case s.CompletionMode == nil || *s.CompletionMode != batch.IndexedCompletion || s.Completions == nil:
		return errors.New("want completionMode Indexed with completions")
	case s.Parallelism == nil || *s.Parallelism < 1 || s.BackoffLimitPerIndex == nil || s.PodFailurePolicy == nil:
		return errors.New("want parallelism, backoffLimitPerIndex and podFailurePolicy")
	case pod.RestartPolicy != core.RestartPolicyNever:
		return errors.New("podFailurePolicy wants restartPolicy Never")
	case len(pod.Containers) != 1 || pod.Containers[0].Image == "" || len(pod.Containers[0].Command) > 0:
		return errors.New("want one container that runs the entry point of its image")
	}
	for i, rule := range s.PodFailurePolicy.Rules {
		codes := rule.OnExitCodes
		switch {
		case (codes == nil) == (len(rule.OnPodConditions) == 0):
			return fmt.Errorf("rule %d: want exit codes or conditions of the pod", i)
		case codes == nil:
		case codes.Operator != batch.PodFailurePolicyOnExitCodesOpIn:
			return fmt.Errorf("rule %d: operator %q: want In", i, codes.Operator)
		case len(codes.Values) == 0 || slices.Contains(codes.Values, 0) || !ascending(codes.Values):
			return fmt.Errorf("rule %d: exit codes %v: want ascending ones without 0", i, codes.Values)
		}
	}
	return nil
}

func ascending(all []int32) bool {
	return slices.IsSorted(all) && len(slices.Compact(slices.Clone(all))) == len(all)
}

// runner runs a Job.
type runner struct {
	spec    *batch.JobSpec
	program string
	args    []string
	env     []string // without the index
}

func newRunner(c cluster, job *batch.Job) (*runner, error) {
	pod := &job.Spec.Template.Spec
	container := &pod.Containers[0]
	r := &runner{spec: &job.Spec, program: container.Name, args: slices.Clone(container.Args),
		env: []string{"PATH=" + os.Getenv("PATH")}}
	for _, from := range container.EnvFrom {
		if from.SecretRef == nil {
			return nil, errors.New("envFrom: want a secretRef")
		}
		lines, err := os.ReadFile(filepath.Join(c.object("secret", from.SecretRef.Name), "env"))
		if err != nil {
			return nil, err
		}
		r.env = append(r.env, strings.Split(strings.TrimSpace(string(lines)), "\n")...)
	}
	for _, mount := range container.VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == mount.Name })
		if i < 0 || pod.Volumes[i].ConfigMap == nil {
			return nil, fmt.Errorf("volume %s: want a configMap", mount.Name)
		}
		folder := c.object("configmap", pod.Volumes[i].ConfigMap.Name)
		if _, err := os.Stat(folder); err != nil {
			return nil, err
		}
		for i, arg := range r.args {
			if rest, inside := strings.CutPrefix(arg, mount.MountPath+"/"); inside {
				r.args[i] = filepath.Join(folder, rest)
			}
		}
	}
	return r, nil
}

// run runs every index to its end. It returns how often each was started, and the failed ones.
func (r *runner) run() (starts, failed []int) {
	starts = make([]int, *r.spec.Completions)
	places := make(chan struct{}, *r.spec.Parallelism)
	var lock sync.Mutex
	var all sync.WaitGroup
	for index := range starts {
		places <- struct{}{}
		all.Go(func() {
			n, done := r.index(index)
			lock.Lock()
			defer lock.Unlock()
			starts[index] = n
			if !done {
				failed = append(failed, index)
			}
			<-places
		})
	}
	all.Wait()
	slices.Sort(failed)
	return starts, failed
}

// mostStarts bounds the repetitions that are not counted.
const mostStarts = 20

// index starts the pods of an index until one succeeds or the index fails.
func (r *runner) index(index int) (starts int, done bool) {
	failures := int32(0)
	for starts < mostStarts {
		starts++
		code := r.pod(index)
		if code == 0 {
			return starts, true
		}
		switch r.action(code) {
		case batch.PodFailurePolicyActionIgnore:
		case batch.PodFailurePolicyActionCount:
			if failures++; failures > *r.spec.BackoffLimitPerIndex {
				return starts, false
			}
		default:
			return starts, false
		}
	}
	return starts, false
}

// action returns what follows an exit code.
func (r *runner) action(code int32) batch.PodFailurePolicyAction {
	for _, rule := range r.spec.PodFailurePolicy.Rules {
		if rule.OnExitCodes != nil && slices.Contains(rule.OnExitCodes.Values, code) {
			return rule.Action
		}
	}
	return batch.PodFailurePolicyActionCount
}

// pod runs the container and returns its exit code.
func (r *runner) pod(index int) int32 {
	c := exec.Command(r.program, r.args...)
	c.Dir = "/"
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.Env = append(slices.Clone(r.env), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
	err := c.Run()
	if c.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "kubectl:", err)
		return 127
	}
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(c.ProcessState.ExitCode())
}
