{{/* Sallyport as a container: a list of one, without `restartPolicy`. */}}
{{- define "sallyport.container" -}}
{{- include "sallyport.checkMounts" . }}
- name: sallyport
  image: {{ include "sallyport.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [serve, --config, /etc/sallyport/sallyport.yaml]
  {{- with include "sallyport.env" . | fromYamlArray }}
  env: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.extraEnvFrom }}
  envFrom: {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    {{- if include "sallyport.isAnswering" . }}
    - { name: proxy, containerPort: {{ .Values.ports.proxy }} }
    {{- end }}
    - { name: probes, containerPort: {{ .Values.ports.probes }} }
  startupProbe:
    httpGet: { path: /livez, port: {{ .Values.ports.probes }} }
    {{- toYaml .Values.startupProbe | nindent 4 }}
  readinessProbe:
    httpGet: { path: /readyz, port: {{ .Values.ports.probes }} }
    {{- toYaml .Values.readinessProbe | nindent 4 }}
  livenessProbe:
    httpGet: { path: /livez, port: {{ .Values.ports.probes }} }
    {{- toYaml .Values.livenessProbe | nindent 4 }}
  {{- with .Values.resources }}
  resources: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.securityContext }}
  securityContext: {{- toYaml . | nindent 4 }}
  {{- end }}
  volumeMounts:
    # A folder and not one file of it: kubelet replaces a link in it when the ConfigMap changes, and Sallyport follows.
    - { name: sallyport-config, mountPath: /etc/sallyport, readOnly: true }
    {{- if .Values.tls.secretName }}
    - { name: sallyport-tls, mountPath: /tls, readOnly: true }
    {{- end }}
    {{- range $index, $file := .Values.secretFiles }}
    - { name: sallyport-secret-{{ $index }}, mountPath: {{ $file.mountPath | quote }}, readOnly: true }
    {{- end }}
    {{- range $index, $file := .Values.configMapFiles }}
    - { name: sallyport-files-{{ $index }}, mountPath: {{ $file.mountPath | quote }}, readOnly: true }
    {{- end }}
    {{- if .Values.egress.socket.enabled }}
    - { name: sallyport-egress, mountPath: {{ .Values.egress.socket.mountPath | quote }} }
    {{- end }}
    {{- if .Values.egress.serviceAccountTokens }}
    - { name: sallyport-tokens, mountPath: /var/run/secrets/sallyport/tokens, readOnly: true }
    {{- end }}
    {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{/*
The containers of the pod with the folder of the calling side's socket in each: takes a list, of Sallyport's context and the containers. They connect
to what is in it, and cannot put another socket in its place.
*/}}
{{- define "sallyport.withSocket" -}}
{{- $socket := (index . 0).Values.egress.socket }}
{{- $containers := list }}
{{- range index . 1 }}
{{- $container := . }}
{{- if $socket.enabled }}
{{- $mount := dict "name" "sallyport-egress" "mountPath" $socket.mountPath "readOnly" true }}
{{- $container = merge (dict "volumeMounts" (append (.volumeMounts | default list) $mount)) . }}
{{- end }}
{{- $containers = append $containers $container }}
{{- end }}
{{- toYaml $containers }}
{{- end }}

{{/* Kubernetes takes the last of two variables with one name without a word. */}}
{{- define "sallyport.env" -}}
{{- $seen := dict }}
{{- range concat .Values.secretEnv .Values.extraEnv }}
{{- if hasKey $seen .name }}{{ fail (printf "secretEnv and extraEnv: %q is there twice" .name) }}{{ end }}
{{- $_ := set $seen .name true }}
{{- end }}
{{- range .Values.secretEnv }}
- name: {{ .name }}
  valueFrom: { secretKeyRef: { name: {{ .secretName }}, key: {{ .key }} } }
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Fails where something would be mounted over the program or its config, or twice at one place. */}}
{{- define "sallyport.checkMounts" -}}
{{- $own := list "/app" "/usr/local/bin" "/etc/sallyport" }}
{{- if .Values.tls.secretName }}{{ $own = append $own "/tls" }}{{ end }}
{{- if .Values.egress.socket.enabled }}{{ $own = append $own (clean .Values.egress.socket.mountPath) }}{{ end }}
{{- if .Values.egress.serviceAccountTokens }}{{ $own = append $own "/var/run/secrets/sallyport/tokens" }}{{ end }}
{{- $seen := dict }}
{{- range concat .Values.secretFiles .Values.configMapFiles .Values.extraVolumeMounts }}
{{- $path := clean .mountPath }}
{{- range $own }}
{{- if or (hasPrefix (printf "%s/" (trimSuffix "/" $path)) (printf "%s/" .)) (hasPrefix (printf "%s/" .) (printf "%s/" $path)) }}
{{- fail (printf "mountPath %q: %s is Sallyport's own; mount at a path apart from it" $path .) }}
{{- end }}
{{- end }}
{{- if hasKey $seen $path }}{{ fail (printf "mountPath %q: something is mounted there already" $path) }}{{ end }}
{{- $_ := set $seen $path true }}
{{- end }}
{{- end }}

{{/* The same as a native sidecar: an item of `initContainers` that starts before the service and ends after it. */}}
{{- define "sallyport.sidecar" -}}
{{ include "sallyport.container" . }}
  restartPolicy: Always
{{- end }}

{{- define "sallyport.volumes" -}}
- name: sallyport-config
  configMap: { name: {{ include "sallyport.configMapName" . }} }
{{- if .Values.tls.secretName }}
- name: sallyport-tls
  secret: { secretName: {{ .Values.tls.secretName }}, defaultMode: 0440 }
{{- end }}
{{- range $index, $file := .Values.secretFiles }}
- name: sallyport-secret-{{ $index }}
  secret: { secretName: {{ $file.secretName }}, defaultMode: 0440 }
{{- end }}
{{- range $index, $file := .Values.configMapFiles }}
- name: sallyport-files-{{ $index }}
  configMap: { name: {{ $file.configMapName }} }
{{- end }}
{{- if .Values.egress.socket.enabled }}
- name: sallyport-egress
  emptyDir: {}
{{- end }}
{{- with .Values.egress.serviceAccountTokens }}
- name: sallyport-tokens
  projected:
    defaultMode: 0440
    sources:
      {{- range . }}
      - serviceAccountToken: { path: {{ .name | quote }}, audience: {{ .audience | quote }}, expirationSeconds: {{ .expirationSeconds | default 3600 }} }
      {{- end }}
{{- end }}
{{- end }}

{{/*
A pod spec with Sallyport in it. Takes a list: Sallyport's context (`.` in this chart, `.Subcharts.sallyport` in yours) and the pod spec as
YAML text. Sallyport becomes the first init container but for `extraInitContainers`, its volumes are added, and every container that says nothing
of it sleeps before it ends, so that Sallyport still has somebody to forward to until load balancers know.
*/}}
{{- define "sallyport.podSpec" -}}
{{- $context := index . 0 }}
{{- $spec := index . 1 | fromYaml }}
{{- if hasKey $spec "Error" }}{{ fail (printf "sallyport.podSpec: the pod spec is no YAML: %s" $spec.Error) }}{{ end }}
{{- $sleep := int $context.Values.receiver.preStopSleepSeconds }}
{{- $containers := list }}
{{- range concat ($spec.containers | default list) $context.Values.extraContainers }}
{{- $container := . }}
{{- if and (gt $sleep 0) (not (dig "lifecycle" "preStop" "" .)) }}
{{- $container = mustMergeOverwrite (deepCopy .) (dict "lifecycle" (dict "preStop" (dict "sleep" (dict "seconds" $sleep)))) }}
{{- end }}
{{- $containers = append $containers $container }}
{{- end }}
{{- $before := $context.Values.extraInitContainers }}
{{- $after := $spec.initContainers | default list }}
{{- $volumes := concat ($spec.volumes | default list) $context.Values.extraVolumes }}
{{- include "sallyport.checkNames" (dict "containers" (concat $before $after $containers) "volumes" $volumes) }}
{{- $_ := set $spec "containers" (include "sallyport.withSocket" (list $context $containers) | fromYamlArray) }}
{{- $after = include "sallyport.withSocket" (list $context $after) | fromYamlArray }}
{{- $_ := set $spec "initContainers" (concat $before (include "sallyport.sidecar" $context | fromYamlArray) $after) }}
{{- $_ := set $spec "volumes" (concat $volumes (include "sallyport.volumes" $context | fromYamlArray)) }}
{{- if kindIs "invalid" $spec.terminationGracePeriodSeconds }}
{{- $_ := set $spec "terminationGracePeriodSeconds" (int $context.Values.terminationGracePeriodSeconds) }}
{{- end }}
{{- if not $context.Values.existingConfigMap }}
{{- $config := include "sallyport.config" $context | fromYaml }}
{{- $where := "sallyport.podSpec: terminationGracePeriodSeconds" }}
{{- include "sallyport.checkTime" (list $context $config $spec.terminationGracePeriodSeconds $where) }}
{{- end }}
{{- with mustMergeOverwrite (deepCopy $context.Values.podSecurityContext) ($spec.securityContext | default dict) }}
{{- $_ := set $spec "securityContext" . }}
{{- end }}
{{- toYaml $spec }}
{{- end }}

{{/* Fails where a container or a volume of the pod has a name of ours, or one that another has. */}}
{{- define "sallyport.checkNames" -}}
{{- $seen := dict "sallyport" true }}
{{- range .containers }}
{{- if eq .name "sallyport" }}{{ fail "container \"sallyport\": the name is Sallyport's own; take another" }}{{ end }}
{{- if hasKey $seen .name }}{{ fail (printf "container %q is there twice: the names of containers and init containers are told apart in a pod" .name) }}{{ end }}
{{- $_ := set $seen .name true }}
{{- end }}
{{- $seen = dict }}
{{- range .volumes }}
{{- if hasPrefix "sallyport-" .name }}{{ fail (printf "volume %q: names that begin with sallyport- are Sallyport's own; take another" .name) }}{{ end }}
{{- if hasKey $seen .name }}{{ fail (printf "volume %q is there twice" .name) }}{{ end }}
{{- $_ := set $seen .name true }}
{{- end }}
{{- end }}
