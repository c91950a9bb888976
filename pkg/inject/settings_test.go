package inject

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

const settingsHead = "apiVersion: config.holdfast.dev/v1alpha1\nkind: WebhookSettings\nimage: agent:v1\n"

func TestSettingsDefaults(t *testing.T) {
	got, err := ParseSettings([]byte(settingsHead))
	if err != nil {
		t.Fatal(err)
	}
	want := &Settings{
		APIVersion: SettingsAPIVersion, Kind: SettingsKind, Image: "agent:v1",
		Redis: RedisSettings{SecretName: "holdfast-redis", Guard: "60s"},
		Agent: AgentSettings{
			RunAsUser: 65532, LogLevel: "info",
			CPURequest:    new(resource.MustParse("10m")),
			MemoryRequest: new(resource.MustParse("16Mi")),
			MemoryLimit:   new(resource.MustParse("32Mi")),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestBadSettings(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string // parts of the error, all of them
	}{
		"empty":           {"", []string{`apiVersion: ""`, `kind: ""`, `image: ""`}},
		"no YAML":         {"\tx", []string{"yaml"}},
		"an unknown key":  {settingsHead + "imagePullSecret: x", []string{`unknown field "imagePullSecret"`}},
		"a key twice":     {settingsHead + "image: other", []string{`key "image" already set`}},
		"another version": {strings.Replace(settingsHead, "v1alpha1", "v9", 1), []string{`apiVersion: "config.holdfast.dev/v9": must be config.holdfast.dev/v1alpha1`}},
		"everything at once": {
			settingsHead + `
imagePullPolicy: Sometimes
imagePullSecrets: [fine, "Not Fine"]
clusterScopeNamespaces: ["*"]
redis: {secretName: "a b", guard: 59s, wait: -1}
agent: {runAsUser: -1, logLevel: loud, cpuRequest: "0", memoryRequest: 64Mi, memoryLimit: 32Mi}
`,
			[]string{
				`imagePullPolicy: "Sometimes": must be Always, IfNotPresent or Never`,
				`imagePullSecrets[1]: "Not Fine"`,
				`clusterScopeNamespaces[0]: "*"`,
				`redis.secretName: "a b"`,
				`redis.wait: "-1": must be from 0 to 100`,
				`redis.guard: "59s": must be "off" or a duration from 60s`,
				`agent.runAsUser: "-1"`,
				`agent.logLevel: "loud": must be debug, info, warn or error`,
				`agent.cpuRequest: "0": must be more than 0`,
				`agent.memoryLimit: "32Mi": must be at least memoryRequest`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSettings([]byte(tc.text))
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error lacks %q:\n%v", part, err)
				}
			}
		})
	}
}

func TestLoadSettingsNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	if _, err := LoadSettings(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("file that is not there: %v", err)
	}
	if err := os.WriteFile(file, []byte("kind: X"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSettings(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("file that is bad: %v", err)
	}
}
