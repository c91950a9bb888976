package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// Mutate puts the agent that req asks for into pod. It cannot fail, since
// [Parse] has judged the same pod; it removes nothing of the user's, and changes
// nothing in a pod that it has been through before.
func Mutate(pod *corev1.Pod, req *Request, settings *Settings) {
	mark(&pod.ObjectMeta)
	spec := &pod.Spec
	putContainers(spec, req, settings)
	putVolumes(spec, settings)
	for i := range spec.Containers {
		if c := &spec.Containers[i]; req.seesStatus(c.Name) {
			showStatus(c, req)
		}
	}
	for _, secret := range settings.pullSecrets() {
		if !slices.Contains(spec.ImagePullSecrets, secret) {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, secret)
		}
	}
}

// mark says on the pod that it has its agent.
func mark(meta *metav1.ObjectMeta) {
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels[LabelInjected] = "true"
	meta.Annotations[KeyStatus] = StatusInjected // there are annotations, or there would be no request
}

// putContainers puts ours where the request wants them among the init containers,
// also if another webhook has put something before them since.
func putContainers(spec *corev1.PodSpec, req *Request, settings *Settings) {
	ours := []corev1.Container{initContainer(spec, req, settings), agentContainer(spec, req, settings)}
	if req.Agent.Gate == agentenv.GateStart {
		ours = append(ours, gateContainer(spec, req, settings))
	}
	users := make([]corev1.Container, 0, len(spec.InitContainers)+len(ours))
	for _, c := range spec.InitContainers {
		if !reservedContainers.Has(c.Name) {
			users = append(users, c)
			continue
		}
		for i := range ours {
			if ours[i].Name == c.Name {
				keepForeign(&ours[i], &c)
			}
		}
	}
	at := 0
	if req.Order == OrderLast {
		at = len(users)
	}
	spec.InitContainers = slices.Insert(users, at, ours...)
}

// putVolumes adds our volumes, or puts right what is there under their names.
func putVolumes(spec *corev1.PodSpec, settings *Settings) {
	for _, v := range volumes(settings) {
		at := slices.IndexFunc(spec.Volumes, func(have corev1.Volume) bool { return have.Name == v.Name })
		if at < 0 {
			spec.Volumes = append(spec.Volumes, v)
			continue
		}
		spec.Volumes[at] = v
	}
}
