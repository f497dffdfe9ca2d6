{{/* The config file: what the chart knows, under what the values say. */}}
{{- define "sallyport.config" -}}
{{- $listen := dict "host" "0.0.0.0" "port" (int .Values.ports.proxy) }}
{{- if .Values.tls.secretName }}
{{- $_ := set $listen "tls" (dict "cert_file" "/tls/tls.crt" "key_file" "/tls/tls.key") }}
{{- else if .Values.tls.terminatedBy }}
{{- $_ := set $listen "tls_terminated_by" .Values.tls.terminatedBy }}
{{- else if not (or (dig "listen" "tls" "" .Values.config) (dig "listen" "tls_terminated_by" "" .Values.config)) }}
{{- fail "tls.secretName or tls.terminatedBy: say who ends TLS; tokens do not cross a network in the clear" }}
{{- end }}
{{- if not .Values.config.routes }}{{ fail "config.routes: at least one route" }}{{ end }}
{{- if not (dig "upstream" "url" "" .Values.config) }}{{ fail "config.upstream.url: the receiving service, such as http://127.0.0.1:3000" }}{{ end }}
{{- $shutdown := dict "delay" "5s" "grace" "25s" }}
{{- if include "sallyport.isSidecar" . }}
{{- /* The service has ended by then, and with it what callers wait for. */}}
{{- $_ := set $shutdown "delay" "0s" }}
{{- end }}
{{- $base := dict
  "listen" $listen
  "admin" (dict "host" "127.0.0.1" "port" (int .Values.ports.admin))
  "probes" (dict "host" "0.0.0.0" "port" (int .Values.ports.probes) "app" .Values.receiver.probes)
  "shutdown" $shutdown }}
{{- mustMergeOverwrite $base (deepCopy .Values.config) | toYaml }}
{{- end }}

{{/* What `helm test` asks with: the other pod's probe listener, in the place of an own one. */}}
{{- define "sallyport.testConfig" -}}
listen: { host: 127.0.0.1, port: {{ .Values.ports.proxy }} }
admin: { host: {{ include "sallyport.fullname" . }}, port: {{ .Values.ports.probes }} }
upstream: { url: "http://127.0.0.1:3000" }
routes:
  - { name: home, methods: [GET], path: /, access: public }
{{- end }}
