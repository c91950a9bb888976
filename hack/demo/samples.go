package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// sample is a workload of config/samples, as far as its pods are concerned.
type sample struct {
	file     string
	kind     string
	name     string
	template corev1.PodTemplateSpec
}

// annotations are the lines that an app team wrote for Holdfast, those that name
// the lock before those that say more about it, as the alphabet happens to have it.
func (s sample) annotations() []string {
	var lines []string
	for key, value := range s.template.Annotations {
		if strings.HasPrefix(key, "holdfast.dev/") {
			lines = append(lines, key+": "+quoted(value))
		}
	}
	slices.Sort(lines)
	slices.Reverse(lines)
	return lines
}

// quoted is value as it must be in YAML: an annotation is never a number.
func quoted(value string) string {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return strconv.Quote(value)
	}
	return value
}

// owners is the controller that makes the pods. It is none for a Deployment: the
// webhook would ask an API server, which is not there, about the ReplicaSet.
func (s sample) owners() []metav1.OwnerReference {
	if s.kind == "Deployment" {
		return nil
	}
	return []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "Job", Name: s.name, UID: uuid.NewUUID(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
}

// loadSamples reads every workload in the YAML files of dir, strictly: a field
// that Kubernetes does not know is an error. Deployments come first.
func loadSamples(dir string) ([]sample, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var samples []sample
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := parseSamples(filepath.Base(file), b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		samples = append(samples, found...)
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("%s: no Deployment, Job or CronJob in it; run this from the top of the repository", dir)
	}
	slices.SortStableFunc(samples, func(a, b sample) int { return rank(a.kind) - rank(b.kind) })
	return samples, nil
}

func rank(kind string) int { return slices.Index([]string{"Deployment", "Job", "CronJob"}, kind) }

func parseSamples(file string, b []byte) ([]sample, error) {
	var samples []sample
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(b)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return nil, err
		}
		s, found, err := parseSample(document)
		if err != nil {
			return nil, err
		}
		if found {
			s.file = file
			samples = append(samples, s)
		}
	}
}

// parseSample finds the pod template of one document. Documents of kinds that
// make no pods are passed over.
func parseSample(document []byte) (s sample, found bool, err error) {
	var head metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(document, &head); err != nil {
		return s, false, err
	}
	s.kind, s.name = head.Kind, head.Name
	switch head.Kind {
	case "Deployment":
		var d appsv1.Deployment
		err = yaml.UnmarshalStrict(document, &d)
		s.template = d.Spec.Template
	case "Job":
		var j batchv1.Job
		err = yaml.UnmarshalStrict(document, &j)
		s.template = j.Spec.Template
	case "CronJob":
		var c batchv1.CronJob
		err = yaml.UnmarshalStrict(document, &c)
		s.template = c.Spec.JobTemplate.Spec.Template
	default:
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("%s %s: %w", head.Kind, head.Name, err)
	}
	return s, true, nil
}

// withLock finds the samples of a kind that have an annotation of Holdfast's.
func withLock(samples []sample, kind, annotation string) ([]sample, error) {
	var found []sample
	for _, s := range samples {
		if _, ok := s.template.Annotations["holdfast.dev/"+annotation]; ok && s.kind == kind {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no %s with the annotation holdfast.dev/%s", samplesDir, kind, annotation)
	}
	return found, nil
}
