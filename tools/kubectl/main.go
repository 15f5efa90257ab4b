// Command kubectl stands in for kubectl and a cluster, for tests of manifests of Jobs:
//
//	CLUSTER=DIR kubectl create configmap NAME --from-file FILE
//	CLUSTER=DIR kubectl create secret generic NAME --from-env-file FILE
//	CLUSTER=DIR kubectl apply -f FILE
//	CLUSTER=DIR kubectl wait --for=condition=Complete --timeout=1m job/NAME
//
// Manifests are decoded strictly into the types of the Kubernetes API. apply returns when the Job has ended: every index
// is a process of this machine, and is repeated as the manifest says. The program of an image is the one on the path with
// the name of the container. CLUSTER is a folder for the state.
//
// It is a module of its own, so that the types of Kubernetes stay out of vramyard's.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	batch "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := command(cluster(os.Getenv("CLUSTER")), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kubectl:", err)
		os.Exit(1)
	}
}

// cluster is the folder of a cluster.
type cluster string

// object returns the path of an object.
func (c cluster) object(kind, name string) string { return filepath.Join(string(c), kind, name) }

// store copies a file into an object.
func (c cluster) store(kind, name, key, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.object(kind, name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.object(kind, name), key), content, 0o600)
}

var errUsage = errors.New("usage: create configmap NAME --from-file FILE, create secret generic NAME --from-env-file FILE, " +
	"apply -f FILE, or wait --for=condition=Complete --timeout=TIME job/NAME")

// command runs a command line.
func command(c cluster, args []string) error {
	line := strings.Join(args, " ")
	last := ""
	if len(args) > 0 {
		last = args[len(args)-1]
	}
	switch {
	case c == "":
		return errors.New("CLUSTER is not set")
	case strings.HasPrefix(line, "create configmap ") && len(args) == 5 && args[3] == "--from-file":
		return c.store("configmap", args[2], filepath.Base(last), last)
	case strings.HasPrefix(line, "create secret generic ") && len(args) == 6 && args[4] == "--from-env-file":
		return c.store("secret", args[3], "env", last)
	case strings.HasPrefix(line, "apply -f ") && len(args) == 3:
		return c.apply(last)
	case strings.HasPrefix(line, "wait --for=condition=Complete --timeout=") && len(args) == 4:
		_, err := os.Stat(c.object("complete", strings.TrimPrefix(last, "job/")))
		return err
	default:
		return fmt.Errorf("%s: %w", line, errUsage)
	}
}

// apply runs the Job of a manifest to its end.
func (c cluster) apply(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	job, err := decode(content)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r, err := newRunner(c, job)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	starts, failed := r.run()
	fmt.Printf("job %s: starts of each index %v, failed indexes %v\n", job.Name, starts, failed)
	if len(failed) > 0 {
		return nil // of the Job, as wait finds
	}
	if err := os.MkdirAll(c.object("complete", job.Name), 0o700); err != nil {
		return err
	}
	return nil
}

// decode reads the manifest of an Indexed Job.
func decode(content []byte) (*batch.Job, error) {
	job := new(batch.Job)
	if err := yaml.UnmarshalStrict(content, job); err != nil {
		return nil, err
	}
	return job, check(job)
}
