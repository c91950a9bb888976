package inject

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

var specPath = field.NewPath("spec")

// checkPod refuses pods beside whose own content an agent has no place.
func (p *parser) checkPod() {
	p.checkPlatform()
	p.checkProbe()
	again := injected(p.spec)
	p.checkNames(again)
	if !again { // else they are ours
		p.checkVolumes()
		p.checkApp()
	}
	p.checkPorts()
}

// checkNoAgent refuses an agent without a lock: somebody has removed the
// annotations from a pod that once had them, and believes it to be protected.
func (p *parser) checkNoAgent() {
	if injected(p.spec) {
		p.require(KeyMutex, "the pod has a container %s but names no lock: add %s or %s, or remove the container", AgentContainer, KeyMutex, KeySemaphore)
	}
}

func (p *parser) checkPlatform() {
	switch {
	case p.spec.OS != nil && p.spec.OS.Name == corev1.Windows:
		p.reject(specPath.Child("os", "name"), string(corev1.Windows), "the agent runs on Linux only")
	case p.spec.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows):
		p.reject(specPath.Child("nodeSelector").Key(corev1.LabelOSStable), string(corev1.Windows), "the agent runs on Linux only")
	}
}

// checkProbe refuses pods in which the kubelet's HTTP probes would not reach the
// agent, so that the app would never start.
func (p *parser) checkProbe() {
	if p.spec.HostNetwork {
		p.reject(specPath.Child("hostNetwork"), "true", "needs %s: exec, which is not supported yet", KeyProbe)
	}
	if where, value := p.meshSidecar(); where != nil {
		p.reject(where, value, "a mesh sidecar breaks the agent's probes: needs %s: exec, which is not supported yet", KeyProbe)
	}
}

// meshSidecar tells by what a pod is known to get a mesh's proxy.
func (p *parser) meshSidecar() (*field.Path, string) {
	const istio, linkerd = "sidecar.istio.io/inject", "linkerd.io/inject"
	metadata := field.NewPath("metadata")
	for i, c := range p.spec.Containers {
		if meshContainer(c.Name) {
			return specPath.Child("containers").Index(i).Child("name"), c.Name
		}
	}
	for i, c := range p.spec.InitContainers {
		if meshContainer(c.Name) {
			return specPath.Child("initContainers").Index(i).Child("name"), c.Name
		}
	}
	switch {
	case p.meta.Labels[istio] == "true":
		return metadata.Child("labels").Key(istio), "true"
	case p.meta.Annotations[istio] == "true":
		return annotationPath(istio), "true"
	case p.meta.Annotations[linkerd] == "enabled", p.meta.Annotations[linkerd] == "ingress":
		return annotationPath(linkerd), p.meta.Annotations[linkerd]
	}
	return nil, ""
}

func meshContainer(name string) bool { return name == "istio-proxy" || name == "linkerd-proxy" }

// checkNames refuses containers of the user's with one of our names. The init
// containers of an injected pod are ours.
func (p *parser) checkNames(again bool) {
	refuse := func(list string, containers []corev1.Container) {
		for i, c := range containers {
			if reservedContainers.Has(c.Name) {
				p.reject(specPath.Child(list).Index(i).Child("name"), c.Name, "Holdfast needs this name: rename the container")
			}
		}
	}
	refuse("containers", p.spec.Containers)
	if !again {
		refuse("initContainers", p.spec.InitContainers)
	}
}

func (p *parser) checkVolumes() {
	for i, v := range p.spec.Volumes {
		if reservedVolumes.Has(v.Name) {
			p.reject(specPath.Child("volumes").Index(i).Child("name"), v.Name, "Holdfast needs this name: rename the volume")
		}
	}
}

// checkApp refuses containers that have something else where the lock's status
// is to be.
func (p *parser) checkApp() {
	for i, c := range p.spec.Containers {
		if !p.req.seesStatus(c.Name) {
			continue
		}
		at := specPath.Child("containers").Index(i)
		for j, m := range c.VolumeMounts {
			if within(m.MountPath, p.req.Agent.Dir) {
				p.reject(at.Child("volumeMounts").Index(j).Child("mountPath"), m.MountPath, "Holdfast needs this path: mount elsewhere, or leave the container out of %s", KeyContainers)
			}
		}
		for j, e := range c.Env {
			if e.Name == agentenv.DirVar || e.Name == agentenv.URLVar {
				p.reject(at.Child("env").Index(j).Child("name"), e.Name, "Holdfast sets this variable: remove it, or leave the container out of %s", KeyContainers)
			}
		}
	}
}

// within tells whether p is dir or below it.
func within(p, dir string) bool {
	p = path.Clean(p)
	return p == dir || strings.HasPrefix(p, dir+"/")
}

// checkPorts refuses an agent whose ports another container of the pod has. Only
// declared ports are known.
func (p *parser) checkPorts() {
	if !p.good(KeyAgentPort) {
		return
	}
	api, probes := int32(p.req.Port), int32(p.req.Port+1)
	check := func(containers []corev1.Container) {
		for _, c := range containers {
			for _, port := range c.Ports {
				if port.Protocol != corev1.ProtocolUDP && port.Protocol != corev1.ProtocolSCTP && (port.ContainerPort == api || port.ContainerPort == probes) {
					p.errs = append(p.errs, field.Invalid(annotationPath(KeyAgentPort), fmt.Sprint(api),
						fmt.Sprintf("the agent needs ports %d and %d, but container %s has %d: set another", api, probes, shorten(c.Name), port.ContainerPort)))
				}
			}
		}
	}
	check(p.spec.InitContainers)
	check(p.spec.Containers)
}
