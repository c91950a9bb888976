package inject

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// The version of the settings file.
const (
	SettingsAPIVersion = "config.holdfast.dev/v1alpha1"
	SettingsKind       = "WebhookSettings"
)

// Settings is what the platform team decides for all pods: the file that
// holdfast-webhook reads. The comment of each field ends with its default.
type Settings struct {
	APIVersion string `json:"apiVersion"` // [SettingsAPIVersion]; required
	Kind       string `json:"kind"`       // [SettingsKind]; required

	// Image is the agent's, by digest or tag; required.
	Image string `json:"image"`
	// ImagePullPolicy of the image; Kubernetes' default.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// ImagePullSecrets are added to the pod's own; the Secrets must exist in the
	// pod's namespace; none.
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`

	// ClusterScopeNamespaces may use the annotation holdfast.dev/scope: cluster;
	// none.
	ClusterScopeNamespaces []string `json:"clusterScopeNamespaces,omitempty"`

	Redis RedisSettings `json:"redis,omitzero"`
	Agent AgentSettings `json:"agent,omitzero"`
}

// RedisSettings is how agents reach Redis.
type RedisSettings struct {
	// SecretName is the Secret in the pod's namespace that has the key url and,
	// where Redis needs them, username, password, ca.crt, tls.crt, tls.key,
	// sentinel-username and sentinel-password; holdfast-redis.
	SecretName string `json:"secretName,omitempty"`
	// Wait is how many replicas must have a hold before it counts; 0.
	Wait int `json:"wait,omitempty"`
	// AllowEviction goes on with a Redis that may evict locks when its memory is
	// full; false.
	AllowEviction bool `json:"allowEviction,omitempty"`
	// Guard is planned, and without effect yet: for how long after its start a
	// Redis grants nothing, since it may have lost its data; "off" for demos and
	// tests only; 60s.
	Guard string `json:"guard,omitempty"`
}

// AgentSettings is how the injected containers run.
type AgentSettings struct {
	// RunAsUser is the uid of the injected containers; 65532.
	RunAsUser int64 `json:"runAsUser,omitempty"`
	// OmitRunAsUser leaves the uid to the platform, as OpenShift wants it; false.
	OmitRunAsUser bool `json:"omitRunAsUser,omitempty"`
	// LogLevel is debug, info, warn or error; info.
	LogLevel string `json:"logLevel,omitempty"`
	// CPURequest; 10m.
	CPURequest *resource.Quantity `json:"cpuRequest,omitempty"`
	// MemoryRequest; 16Mi.
	MemoryRequest *resource.Quantity `json:"memoryRequest,omitempty"`
	// MemoryLimit; 32Mi.
	MemoryLimit *resource.Quantity `json:"memoryLimit,omitempty"`
}

// LoadSettings reads a settings file. Its error names the file and everything
// that is wrong with it.
func LoadSettings(path string) (*Settings, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	s, err := ParseSettings(text)
	if err != nil {
		return nil, fmt.Errorf("settings %s: %w", path, err)
	}
	return s, nil
}

// ParseSettings reads YAML strictly: a field that it does not know is an error,
// as is one that is there twice.
func ParseSettings(text []byte) (*Settings, error) {
	s := &Settings{}
	if err := yaml.UnmarshalStrict(text, s); err != nil {
		return nil, err
	}
	s.setDefaults()
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Settings) setDefaults() {
	if s.Redis.SecretName == "" {
		s.Redis.SecretName = "holdfast-redis"
	}
	if s.Redis.Guard == "" {
		s.Redis.Guard = "60s"
	}
	if s.Agent.RunAsUser == 0 {
		s.Agent.RunAsUser = 65532
	}
	if s.Agent.LogLevel == "" {
		s.Agent.LogLevel = "info"
	}
	quantity := func(q **resource.Quantity, value string) {
		if *q == nil {
			*q = new(resource.MustParse(value))
		}
	}
	quantity(&s.Agent.CPURequest, "10m")
	quantity(&s.Agent.MemoryRequest, "16Mi")
	quantity(&s.Agent.MemoryLimit, "32Mi")
}

// check says everything that is wrong, each with the field's name.
func (s *Settings) check() error {
	var errs []error
	want := func(ok bool, name string, value any, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %q: must be %s", name, fmt.Sprint(value), must))
		}
	}
	want(s.APIVersion == SettingsAPIVersion, "apiVersion", s.APIVersion, SettingsAPIVersion)
	want(s.Kind == SettingsKind, "kind", s.Kind, SettingsKind)
	want(s.Image != "", "image", s.Image, "the agent's image, such as registry.example/holdfast-agent:v1")
	want(pullPolicies[s.ImagePullPolicy], "imagePullPolicy", s.ImagePullPolicy, "Always, IfNotPresent or Never")
	for i, name := range s.ImagePullSecrets {
		want(subdomain(name), fmt.Sprintf("imagePullSecrets[%d]", i), name, "the name of a Secret")
	}
	for i, name := range s.ClusterScopeNamespaces {
		want(len(validation.IsDNS1123Label(name)) == 0, fmt.Sprintf("clusterScopeNamespaces[%d]", i), name, "the name of a namespace")
	}
	want(subdomain(s.Redis.SecretName), "redis.secretName", s.Redis.SecretName, "the name of a Secret")
	want(s.Redis.Wait >= 0 && s.Redis.Wait <= 100, "redis.wait", s.Redis.Wait, "from 0 to 100")
	_, err := s.guard()
	want(err == nil, "redis.guard", s.Redis.Guard, `"off" or a duration from 60s`)
	want(s.Agent.RunAsUser > 0, "agent.runAsUser", s.Agent.RunAsUser, "more than 0; see omitRunAsUser to leave it unset")
	_, err = s.logLevel()
	want(err == nil, "agent.logLevel", s.Agent.LogLevel, "debug, info, warn or error")
	want(s.Agent.CPURequest.Sign() > 0, "agent.cpuRequest", s.Agent.CPURequest, "more than 0")
	want(s.Agent.MemoryRequest.Sign() > 0, "agent.memoryRequest", s.Agent.MemoryRequest, "more than 0")
	want(s.Agent.MemoryLimit.Cmp(*s.Agent.MemoryRequest) >= 0, "agent.memoryLimit", s.Agent.MemoryLimit, "at least memoryRequest")
	return errors.Join(errs...)
}

var pullPolicies = map[corev1.PullPolicy]bool{"": true, corev1.PullAlways: true, corev1.PullIfNotPresent: true, corev1.PullNever: true}

func subdomain(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// guard is 0 for "off". A shorter one than the longest TTL would not guard.
func (s *Settings) guard() (time.Duration, error) {
	if s.Redis.Guard == "off" {
		return 0, nil
	}
	d, err := time.ParseDuration(s.Redis.Guard)
	if err == nil && d < maxTTL {
		err = fmt.Errorf("less than %s", maxTTL)
	}
	return d, err
}

func (s *Settings) logLevel() (slog.Level, error) {
	var level slog.Level
	err := level.UnmarshalText([]byte(s.Agent.LogLevel))
	return level, err
}

// pullSecrets is what a pod's list must contain.
func (s *Settings) pullSecrets() []corev1.LocalObjectReference {
	var refs []corev1.LocalObjectReference
	for _, name := range s.ImagePullSecrets {
		refs = append(refs, corev1.LocalObjectReference{Name: name})
	}
	return refs
}
