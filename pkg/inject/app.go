package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// seesStatus tells whether an app container gets the mount and the variables.
func (r *Request) seesStatus(container string) bool {
	return r.Containers == nil || slices.Contains(r.Containers, container)
}

// showStatus lets an app container see the lock. Nothing else of it changes.
func showStatus(c *corev1.Container, req *Request) {
	setEnv(&c.Env, corev1.EnvVar{Name: agentenv.URLVar, Value: req.apiURL()})
	setEnv(&c.Env, corev1.EnvVar{Name: agentenv.DirVar, Value: req.Agent.Dir})
	addMount(&c.VolumeMounts, corev1.VolumeMount{Name: RunVolume, MountPath: req.Agent.Dir, ReadOnly: true})
}

// setEnv sets a variable wherever it is already, else at the end of env.
func setEnv(env *[]corev1.EnvVar, v corev1.EnvVar) {
	found := false
	for i := range *env {
		if (*env)[i].Name == v.Name {
			(*env)[i], found = v, true
		}
	}
	if !found {
		*env = append(*env, v)
	}
}

// addMount adds a mount, or puts right what is mounted at its path.
func addMount(mounts *[]corev1.VolumeMount, m corev1.VolumeMount) {
	at := slices.IndexFunc(*mounts, func(have corev1.VolumeMount) bool { return have.MountPath == m.MountPath })
	if at < 0 {
		*mounts = append(*mounts, m)
		return
	}
	(*mounts)[at] = m
}
