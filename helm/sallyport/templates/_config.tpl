{{/* The config file: what the chart knows, under what the values say. */}}
{{- define "sallyport.config" -}}
{{- $shutdown := dict "delay" "5s" "grace" "25s" }}
{{- if include "sallyport.isSidecar" . }}
{{- /* The service has ended by then, and with it what callers wait for. */}}
{{- $_ := set $shutdown "delay" "0s" }}
{{- end }}
{{- $base := dict
  "admin" (dict "host" "127.0.0.1" "port" (int .Values.ports.admin))
  "probes" (dict "host" "0.0.0.0" "port" (int .Values.ports.probes) "app" .Values.receiver.probes)
  "shutdown" $shutdown }}
{{- $own := deepCopy .Values.config }}
{{- if include "sallyport.isAnswering" . }}
{{- $_ := set $base "listen" (include "sallyport.listen" . | fromYaml) }}
{{- else }}
{{- include "sallyport.checkCallingAlone" . }}
{{- $own = omit $own "upstream" "issuers" "routes" }}
{{- end }}
{{- if .Values.config.egress }}
{{- $_ := set $base "egress" (dict "listen" (include "sallyport.egressListen" . | fromYaml)) }}
{{- end }}
{{- $config := mustMergeOverwrite $base $own }}
{{- range $section, $key := dict "listen" "proxy" "probes" "probes" }}
{{- include "sallyport.checkListener" (list $ $section (get $config $section) $key) }}
{{- end }}
{{- /* In somebody else's pod what counts is the time of that pod, which podSpec looks at. */}}
{{- if not .Values.sidecar.enabled }}
{{- include "sallyport.checkTime" (list . $config .Values.terminationGracePeriodSeconds "terminationGracePeriodSeconds") }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/*
What counts at start only, and is not reloaded, as an annotation: pods with another one are replaced. Your own pods get it by an include, with
`.Subcharts.sallyport`.
*/}}
{{- define "sallyport.podAnnotations" -}}
{{- $config := dict }}
{{- if not .Values.existingConfigMap }}{{ $config = include "sallyport.config" . | fromYaml }}{{ end }}
{{- $start := pick $config "listen" "admin" "probes" "sessions" "store" "decide" "workers" }}
{{- with $config.egress }}{{ $_ := set $start "egress" (pick . "listen") }}{{ end }}
{{- with $config.telemetry }}{{ $_ := set $start "telemetry" (omit . "traces") }}{{ end }}
{{- /* What verifies sessions is opened where a route accepts them. */}}
{{- range $config.routes }}{{ if has "session" (.accept | default list) }}{{ $_ := set $start "accept" "session" }}{{ end }}{{ end -}}
checksum/start: {{ $start | toJson | sha256sum }}
{{- end }}

{{/*
Fails where the config has a listener that nobody finds: on another port than the pod and the Services go by, or on loopback, where kubelet does not
ask, and where a Service leads callers to nobody but a container of the pod. Takes a list: Sallyport's context, the section, its value and the key of `ports`. What a
placeholder stands for only Sallyport can read.
*/}}
{{- define "sallyport.checkListener" -}}
{{- $values := (index . 0).Values }}
{{- $section := index . 1 }}
{{- $listener := index . 2 | default dict }}
{{- $key := index . 3 }}
{{- $isOfProbes := eq $section "probes" }}
{{- if and $isOfProbes (not $listener) }}{{ fail "config.probes: kubelet asks there; leave it out, and the chart adds it" }}{{ end }}
{{- $host := toString $listener.host }}
{{- $isLoopback := regexMatch "(?i)^(127\\.|(::|(0+:){7})0*1$|::ffff:127\\.|localhost$)" $host }}
{{- if and $isLoopback $isOfProbes }}
{{- fail (printf "config.probes.host: %s is not where kubelet asks, which is the pod's address; leave it out" $host) }}
{{- end }}
{{- /* Without a Service nobody is led there: a container that is injected may be in front, or callers ask at `decide`. */}}
{{- if and $isLoopback $values.service.enabled (not (include "sallyport.hasFront" (index . 0))) }}
{{- $says := "config.listen.host: %s is reached by containers of this pod alone, and none is in front; leave it out, or bring one by extraInitContainers with restartPolicy: Always, or by extraContainers, or, where a mesh forwards to loopback, take it from a placeholder; without a Service (service.enabled: false) it may stay" }}
{{- fail (printf $says $host) }}
{{- end }}
{{- $isBehind := and (not $isOfProbes) (or $isLoopback (contains "${" $host)) }}
{{- $port := $listener.port }}
{{- $found := get $values.ports $key }}
{{- if not (or $isBehind (kindIs "invalid" $port) (kindIs "string" $port) (eq (int $port) (int $found))) }}
{{- fail (printf "config.%s.port: %v is not ports.%s (%v), by which others find it; set that one" $section $port $key $found) }}
{{- end }}
{{- end }}

{{/* Whether the pod may have a container that takes what callers send: one more that runs beside Sallyport, or those of somebody else's pod. */}}
{{- define "sallyport.hasFront" -}}
{{- if or .Values.sidecar.enabled .Values.extraContainers }}true{{ end }}
{{- range .Values.extraInitContainers }}{{ if eq (toString .restartPolicy) "Always" }}true{{ end }}{{ end }}
{{- end }}

{{/* What the port of callers speaks, as far as the values say. */}}
{{- define "sallyport.scheme" -}}
{{- $isTls := or .Values.tls.secretName (dig "listen" "tls" "" .Values.config) (eq .Values.service.appProtocol "https") -}}
{{ ternary "https" "http" (not (empty $isTls)) }}
{{- end }}

{{/*
Fails where a pod is ended before Sallyport is through. Takes a list: Sallyport's context, its config, the seconds that the pod has, and where they stand.
Once the grace is over, Sallyport settles reserved writes and closes what is open, for at most 5 s.
*/}}
{{- define "sallyport.checkTime" -}}
{{- $shutdown := (index . 1).shutdown }}
{{- $needed := addf (include "sallyport.seconds" $shutdown.delay) (include "sallyport.seconds" $shutdown.grace) }}
{{- with index . 0 }}
{{- if include "sallyport.isSidecar" . }}{{ $needed = addf $needed .Values.receiver.preStopSleepSeconds }}{{ end }}
{{- end }}
{{- $needed = addf $needed 5 }}
{{- if lt (float64 (index . 2)) $needed }}
{{- $says := "%s: %v is less than %v s: shutdown.delay, shutdown.grace, receiver.preStopSleepSeconds and 5 s in which Sallyport ends" }}
{{- fail (printf $says (index . 3) (index . 2) $needed) }}
{{- end }}
{{- end }}

{{/* Whether others call this pod over the network: all but those whose config has the calling side alone. */}}
{{- define "sallyport.isAnswering" -}}
{{- $config := .Values.config }}
{{- if or .Values.existingConfigMap (not $config.egress) $config.routes $config.upstream $config.issuers $config.listen }}true{{ end }}
{{- end }}

{{/* The listener of callers, and what its config needs beside it. */}}
{{- define "sallyport.listen" -}}
{{- $listen := dict "host" "0.0.0.0" "port" (int .Values.ports.proxy) }}
{{- $inFront := dig "listen" "tls_terminated_by" "" .Values.config }}
{{- if and .Values.tls.secretName $inFront }}
{{- fail "tls.secretName: config.listen.tls_terminated_by says that TLS ends in front; one of the two" }}
{{- end }}
{{- if and .Values.tls.terminatedBy (dig "listen" "tls" "" .Values.config) }}
{{- fail "tls.terminatedBy: config.listen.tls ends TLS here; one of the two" }}
{{- end }}
{{- if .Values.tls.secretName }}
{{- $_ := set $listen "tls" (dict "cert_file" "/tls/tls.crt" "key_file" "/tls/tls.key") }}
{{- else if .Values.tls.terminatedBy }}
{{- $_ := set $listen "tls_terminated_by" .Values.tls.terminatedBy }}
{{- else if not (or (dig "listen" "tls" "" .Values.config) $inFront) }}
{{- fail "tls.secretName or tls.terminatedBy: say who ends TLS; tokens do not cross a network in the clear" }}
{{- end }}
{{- if not .Values.config.routes }}{{ fail "config.routes: at least one route" }}{{ end }}
{{- if not (dig "upstream" "url" "" .Values.config) }}{{ fail "config.upstream.url: the receiving service, such as http://127.0.0.1:3000" }}{{ end }}
{{- toYaml $listen }}
{{- end }}

{{/* Fails where a value has no use because nobody calls this pod over the network. */}}
{{- define "sallyport.checkCallingAlone" -}}
{{- $alone := "config.egress stands alone, and nobody calls this pod over the network" }}
{{- if or .Values.tls.secretName .Values.tls.terminatedBy }}{{ fail (printf "tls: %s; leave it out, or give config routes" $alone) }}{{ end }}
{{- if .Values.receiver.probes }}{{ fail (printf "receiver.probes: %s; let kubelet ask the container itself" $alone) }}{{ end }}
{{- end }}

{{/* The listener of the calling side: of this pod alone. */}}
{{- define "sallyport.egressListen" -}}
{{- if not (or (include "sallyport.isSidecar" .) .Values.extraContainers) }}
{{- fail "config.egress: its listener is the pod's own; bring the workload into it by receiver.container, sidecar.enabled or extraContainers" }}
{{- end }}
{{- $written := dig "egress" "listen" dict .Values.config }}
{{- if .Values.egress.socket.enabled }}
{{- range list "host" "port" "unix" }}
{{- if hasKey $written . }}{{ fail (printf "config.egress.listen.%s: egress.socket.enabled says where the calling side listens" .) }}{{ end }}
{{- end }}
{{- dict "unix" (printf "%s/egress.sock" (clean .Values.egress.socket.mountPath)) "mode" "0660" | toYaml }}
{{- else if not $written.unix }}
{{- dict "host" "127.0.0.1" "port" (int .Values.ports.egress) | toYaml }}
{{- end }}
{{- end }}

{{/* A duration of the config in seconds; 0 where it is a placeholder, which only Sallyport can read. */}}
{{- define "sallyport.seconds" -}}
{{- $unit := regexFind "[a-z]+$" . }}
{{- $worth := dict "ms" 0.001 "s" 1 "m" 60 "h" 3600 "d" 86400 }}
{{- if regexMatch "^[0-9]+(ms|s|m|h|d)$" . }}{{ mulf (trimSuffix $unit . | float64) (get $worth $unit) }}{{ else }}0{{ end }}
{{- end }}

{{/* What `helm test` asks with: the other pod's probe listener, in the place of an own one. */}}
{{- define "sallyport.testConfig" -}}
listen: { host: 127.0.0.1, port: {{ .Values.ports.proxy }} }
admin: { host: {{ include "sallyport.fullname" . }}-metrics, port: {{ .Values.ports.probes }} }
upstream: { url: "http://127.0.0.1:3000" }
routes:
  - { name: home, methods: [GET], path: /, access: public }
{{- end }}
