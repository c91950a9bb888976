#!/usr/bin/env bash
# How each program of the node is started and ended, for the scripts beside this
# file to read in.
# shellcheck disable=SC2034 # they use more of the names than this file does

state=${HOLDFAST_NODE_STATE:-/var/tmp/holdfast-node}
kubeconfig=$state/kubeconfig
containerd_socket=$state/containerd/containerd.sock

node=node1
gateway=10.88.0.1 # the node's address, on the bridge of its pods
pods=10.88.0.0/16
services=10.96.0.0/16
bridge=hfbr0

# One node at a time on a machine, whose bridge and ports have fixed names. Who
# starts or ends it, or tests on it, has a lock on this file; it says which state
# folder is that of the node that is up.
claims=/run/lock/holdfast-node

# claim takes the lock, unless a caller of this script has it.
claim() {
  [ "${HOLDFAST_NODE_CLAIMED:-}" != 1 ] || return 0
  mkdir -p "${claims%/*}"
  exec 9>>"$claims"
  flock --nonblock 9 || {
    echo "node: somebody else uses the node of this machine: another 'make e2e', or 'up' or 'down' (lock: $claims)" >&2
    return 1
  }
}

# elsewhere prints the state folder of the node that is up, if it is not this one.
elsewhere() {
  local mine=$state state
  state=$(cat "$claims" 2>/dev/null)
  if [ -n "$state" ] && [ "$state" != "$mine" ] && running apiserver; then echo "$state"; fi
}

bin= # the folder of the programs
find_programs() { bin=$("$(dirname "${BASH_SOURCE[0]}")/build"); }

# start runs a program in the background and remembers its process id.
start() { # NAME COMMAND...
  local name=$1
  shift
  setsid "$@" >>"$state/logs/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$state/$name.pid"
}

# running tells whether what start started is there still, and not another
# process that has got its number: all have the state folder in their arguments.
running() { # NAME
  [ -f "$state/$1.pid" ] && grep -qsF "$state" "/proc/$(<"$state/$1.pid")/cmdline"
}

# stop ends what start started, and waits for its end.
stop() { # NAME [SIGNAL]
  if running "$1"; then kill -s "${2:-TERM}" "$(<"$state/$1.pid")" 2>/dev/null; fi
  for _ in $(seq 100); do
    running "$1" || break
    sleep 0.1
  done
  rm -f "$state/$1.pid"
}

# await tries a command until it succeeds.
await() { # SECONDS WHAT COMMAND...
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $until ]; then
      echo "node: $what did not come up: see $state/logs" >&2
      return 1
    fi
    sleep 0.2
  done
}

kubectl() { "$bin/kubectl" --kubeconfig "$kubeconfig" "$@"; }
ctr() { "$bin/ctr" -a "$containerd_socket" -n k8s.io "$@"; }

start_etcd() {
  start etcd "$bin/etcd" --data-dir "$state/etcd" --unsafe-no-fsync --log-level error \
    --listen-client-urls http://127.0.0.1:22379 --advertise-client-urls http://127.0.0.1:22379 \
    --listen-peer-urls http://127.0.0.1:22380 --initial-advertise-peer-urls http://127.0.0.1:22380 \
    --initial-cluster default=http://127.0.0.1:22380
}

start_apiserver() {
  start apiserver "$bin/kube-apiserver" --etcd-servers http://127.0.0.1:22379 \
    --secure-port 16443 --bind-address 0.0.0.0 --advertise-address "$gateway" --cert-dir "$state/certs" \
    --token-auth-file "$state/tokens.csv" --authorization-mode RBAC --allow-privileged=true \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$state/sa.key" --service-account-signing-key-file "$state/sa.key" \
    --service-cluster-ip-range "$services" --kubelet-preferred-address-types InternalIP
  await 60 kube-apiserver kubectl get --raw /readyz
}

start_controllers() {
  local client=(--kubeconfig "$kubeconfig" --authentication-kubeconfig "$kubeconfig"
    --authorization-kubeconfig "$kubeconfig" --cert-dir "$state/certs" --leader-elect=false)
  start controller-manager "$bin/kube-controller-manager" "${client[@]}" --cluster-cidr "$pods" \
    --service-account-private-key-file "$state/sa.key" --root-ca-file "$state/certs/apiserver.crt"
  start scheduler "$bin/kube-scheduler" "${client[@]}"
}

# containerd finds runc and its own shim in PATH.
start_containerd() {
  PATH=$bin:$PATH start containerd "$bin/containerd" --config "$state/containerd/config.toml"
  await 30 containerd ctr version
}

start_kubelet() {
  start kubelet "$bin/kubelet" --config "$state/kubelet/config.yaml" --kubeconfig "$kubeconfig" \
    --root-dir "$state/kubelet/root" --cert-dir "$state/kubelet/pki" --hostname-override "$node" --node-ip "$gateway"
}

start_proxy() {
  start proxy "$bin/kube-proxy" --kubeconfig "$kubeconfig" --hostname-override "$node" \
    --cluster-cidr "$pods" --proxy-mode iptables --conntrack-max-per-core 0
}

# kill_containers ends every container of this node's containerd. A shim outlives
# the daemon that started it, and names the daemon's socket in its arguments.
kill_containers() {
  local file process
  for file in "$state"/containerd/run/io.containerd.runtime.v2.task/k8s.io/*/init.pid; do
    if [ -f "$file" ]; then kill -KILL "$(<"$file")" 2>/dev/null; fi
  done
  for process in /proc/[0-9]*; do
    if tr '\0' ' ' 2>/dev/null <"$process/cmdline" | grep -qF "containerd-shim-runc-v2 -namespace k8s.io" &&
      grep -qsF "$containerd_socket" "$process/cmdline"; then
      kill -KILL "${process#/proc/}" 2>/dev/null
    fi
  done
  return 0
}
