package inject

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// volumes is what the pod gets. The files are in memory: no disk write for each
// renewal, and no volume that keeps the autoscaler from draining a node.
func volumes(settings *Settings) []corev1.Volume {
	return []corev1.Volume{
		inMemory(RunVolume),
		inMemory(StateVolume),
		{Name: RedisVolume, VolumeSource: corev1.VolumeSource{
			// The Secret must exist, or the pod would wait for a lock without
			// saying what is missing; the kubelet does say so. Which keys it has
			// is up to Redis' set-up.
			Secret: &corev1.SecretVolumeSource{SecretName: settings.Redis.SecretName, DefaultMode: new(int32(0o444))},
		}},
	}
}

func inMemory(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium:    corev1.StorageMediumMemory,
			SizeLimit: new(resource.MustParse("1Mi")),
		},
	}}
}
