package inject

import (
	"fmt"
	"path"
	"slices"
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

// checkProbe decides how the kubelet asks where the annotation does not say it: by
// exec where an HTTP probe would not reach the agent, so that the app would never
// start.
func (p *parser) checkProbe() {
	p.req.HostNetwork = p.spec.HostNetwork
	switch {
	case p.req.HostNetwork && p.req.Probe == ProbeHTTP:
		p.refuse(KeyProbe, "the pod has hostNetwork, where the agent may open no port: use %q, or remove this key", ProbeExec)
	case p.req.Probe != "":
	case p.req.HostNetwork, p.hasMesh():
		p.req.Probe = ProbeExec
	default:
		p.req.Probe = ProbeHTTP
	}
	if p.req.HostNetwork && p.has(KeyAgentPort) {
		p.refuse(KeyAgentPort, "the pod has hostNetwork, where the agent opens no port: remove this key")
	}
}

// hasMesh tells whether a mesh's proxy is in the pod, or is asked for. Where a whole
// namespace is in a mesh the pod does not say so: then the API server asks again
// once the mesh's own webhook has put its proxy in.
func (p *parser) hasMesh() bool {
	const istio, linkerd = "sidecar.istio.io/inject", "linkerd.io/inject"
	return slices.ContainsFunc(p.spec.Containers, meshProxy) ||
		slices.ContainsFunc(p.spec.InitContainers, meshProxy) ||
		p.meta.Labels[istio] == "true" || p.meta.Annotations[istio] == "true" ||
		p.meta.Annotations[linkerd] == "enabled" || p.meta.Annotations[linkerd] == "ingress"
}

func meshProxy(c corev1.Container) bool { return c.Name == "istio-proxy" || c.Name == "linkerd-proxy" }

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
	if !p.good(KeyAgentPort, KeyProbe) {
		return
	}
	needed := p.req.ports()
	for _, c := range slices.Concat(p.spec.InitContainers, p.spec.Containers) {
		for _, port := range c.Ports {
			tcp := port.Protocol == corev1.ProtocolTCP || port.Protocol == ""
			if tcp && slices.Contains(needed, port.ContainerPort) {
				p.errs = append(p.errs, field.Invalid(annotationPath(KeyAgentPort), fmt.Sprint(p.req.Port),
					fmt.Sprintf("the agent needs %s, but container %s has %d: set another", listPorts(needed), shorten(c.Name), port.ContainerPort)))
			}
		}
	}
}

func listPorts(ports []int32) string {
	if len(ports) == 1 {
		return fmt.Sprintf("port %d", ports[0])
	}
	return fmt.Sprintf("ports %d and %d", ports[0], ports[1])
}
