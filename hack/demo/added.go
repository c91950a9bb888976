package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// added describes what injection did to a pod, a line for each thing, for
// people. Whatever it did beyond adding is a line that starts with "changed".
func added(before, after *corev1.Pod) []string {
	var lines []string
	for _, c := range after.Spec.InitContainers {
		if container(before.Spec.InitContainers, c.Name) == nil {
			lines = append(lines, describeContainer(c))
		}
	}
	if volumes := newNames(before.Spec.Volumes, after.Spec.Volumes, func(v corev1.Volume) string { return v.Name }); len(volumes) > 0 {
		lines = append(lines, "volumes        "+strings.Join(volumes, ", "))
	}
	for _, was := range before.Spec.Containers {
		lines = append(lines, addedTo(was, container(after.Spec.Containers, was.Name))...)
	}
	return lines
}

func describeContainer(c corev1.Container) string {
	if c.Name == "holdfast-gate" {
		return "init container " + c.Name + ": ends, and lets the app start, once the lock is held"
	}
	if !isSidecar(&c) {
		return "init container " + c.Name
	}
	line := "sidecar        " + c.Name
	if restartsAll(&c, 1) {
		line += "; its failure restarts the pod"
	}
	return line
}

// addedTo describes what an app's container got.
func addedTo(was corev1.Container, is *corev1.Container) []string {
	if is == nil {
		return []string{"changed        container " + was.Name + " was removed"}
	}
	got := newNames(was.Env, is.Env, func(v corev1.EnvVar) string { return v.Name })
	for _, m := range is.VolumeMounts {
		if !slices.ContainsFunc(was.VolumeMounts, func(w corev1.VolumeMount) bool { return w.Name == m.Name }) {
			got = append(got, m.MountPath)
		}
	}
	var lines []string
	if len(got) > 0 {
		lines = append(lines, fmt.Sprintf("in %-11s %s", was.Name, strings.Join(got, ", ")))
	}
	rest := *is
	rest.Env, rest.VolumeMounts = was.Env, was.VolumeMounts
	if !reflect.DeepEqual(was, rest) {
		lines = append(lines, "changed        container "+was.Name)
	}
	return lines
}

func container(all []corev1.Container, name string) *corev1.Container {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// newNames names the elements of after that before does not have.
func newNames[T any](before, after []T, name func(T) string) []string {
	var names []string
	for _, x := range after {
		if !slices.ContainsFunc(before, func(b T) bool { return name(b) == name(x) }) {
			names = append(names, name(x))
		}
	}
	return names
}
