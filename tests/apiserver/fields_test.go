package apiserver

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// fillSpec writes fields of many ages into a spec, the newest above all: those
// are what a webhook with an old client library loses.
func fillSpec(spec *corev1.PodSpec) {
	yes, always, grace := true, corev1.ContainerRestartPolicyAlways, int64(90)
	spec.TerminationGracePeriodSeconds = &grace
	spec.HostUsers = new(bool)
	spec.SetHostnameAsFQDN = &yes
	spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/quota"}}
	spec.OS = &corev1.PodOS{Name: corev1.Linux}
	spec.Overhead = nil
	spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "registry.example/model:1"}}},
	}
	spec.InitContainers = []corev1.Container{
		{Name: "migrate", Image: "registry.example/migrate:1"},
		{Name: "proxy", Image: "registry.example/proxy:1", RestartPolicy: &always},
	}
	app := &spec.Containers[0]
	app.Command, app.Args = []string{"etl"}, []string{"--token", "$(TOKEN)"}
	app.Env = []corev1.EnvVar{{Name: "TOKEN", Value: "a"}, {Name: "TOKEN", Value: "b"}} // doubled on purpose
	app.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	app.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9000}}}
	app.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 3}}}
	app.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("web")}}}
	app.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	app.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}}
	app.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.250")}
}

// withoutOurs takes out of the pod all that carries one of our names.
func withoutOurs(pod *corev1.Pod) {
	spec := &pod.Spec
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, func(c corev1.Container) bool { return ours(c.Name) })
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return ours(v.Name) })
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return ours(m.Name) })
			c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return strings.HasPrefix(v.Name, "HOLDFAST_") })
		}
	}
	for key := range pod.Labels {
		if strings.HasPrefix(key, "holdfast.dev/") {
			delete(pod.Labels, key)
		}
	}
}

func ours(name string) bool { return strings.HasPrefix(name, "holdfast-") }
