{{/* Sallyport as a container: a list of one, without `restartPolicy`. */}}
{{- define "sallyport.container" -}}
- name: sallyport
  image: {{ include "sallyport.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [serve, --config, /etc/sallyport/sallyport.yaml]
  {{- with .Values.secretEnv }}
  env:
    {{- range . }}
    - name: {{ .name }}
      valueFrom: { secretKeyRef: { name: {{ .secretName }}, key: {{ .key }} } }
    {{- end }}
  {{- end }}
  ports:
    - { name: proxy, containerPort: {{ .Values.ports.proxy }} }
    - { name: probes, containerPort: {{ .Values.ports.probes }} }
  # Asks nothing outside: an issuer that is down must not hold up a roll-out.
  startupProbe:
    httpGet: { path: /livez, port: {{ .Values.ports.probes }} }
    periodSeconds: 1
    failureThreshold: 30
  readinessProbe:
    httpGet: { path: /readyz, port: {{ .Values.ports.probes }} }
    periodSeconds: 2
    failureThreshold: 2
    timeoutSeconds: 2
  livenessProbe:
    httpGet: { path: /livez, port: {{ .Values.ports.probes }} }
    periodSeconds: 10
    failureThreshold: 3
    timeoutSeconds: 2
  {{- with .Values.resources }}
  resources: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    capabilities: { drop: [ALL] }
    seccompProfile: { type: RuntimeDefault }
  volumeMounts:
    # A folder and not one file of it: kubelet replaces a link in it when the ConfigMap changes, and Sallyport follows.
    - { name: sallyport-config, mountPath: /etc/sallyport, readOnly: true }
    {{- if .Values.tls.secretName }}
    - { name: sallyport-tls, mountPath: /tls, readOnly: true }
    {{- end }}
    {{- range $index, $file := .Values.secretFiles }}
    - { name: sallyport-secret-{{ $index }}, mountPath: {{ $file.mountPath | quote }}, readOnly: true }
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
{{- end }}

{{/*
A pod spec with Sallyport in it. Takes a list: Sallyport's context (`.` in this chart, `.Subcharts.sallyport` in yours) and the pod spec as
YAML text. Sallyport becomes the first init container, its volumes are added, and every container that says nothing of it sleeps before it
ends, so that Sallyport still has somebody to forward to until load balancers know.
*/}}
{{- define "sallyport.podSpec" -}}
{{- $context := index . 0 }}
{{- $spec := index . 1 | fromYaml }}
{{- if hasKey $spec "Error" }}{{ fail (printf "sallyport.podSpec: the pod spec is no YAML: %s" $spec.Error) }}{{ end }}
{{- $sleep := int $context.Values.receiver.preStopSleepSeconds }}
{{- $containers := list }}
{{- range $spec.containers }}
{{- $container := . }}
{{- if and (gt $sleep 0) (not (dig "lifecycle" "preStop" "" .)) }}
{{- $container = mustMergeOverwrite (deepCopy .) (dict "lifecycle" (dict "preStop" (dict "sleep" (dict "seconds" $sleep)))) }}
{{- end }}
{{- $containers = append $containers $container }}
{{- end }}
{{- $_ := set $spec "containers" $containers }}
{{- $_ := set $spec "initContainers" (concat (include "sallyport.sidecar" $context | fromYamlArray) ($spec.initContainers | default list)) }}
{{- $_ := set $spec "volumes" (concat ($spec.volumes | default list) (include "sallyport.volumes" $context | fromYamlArray)) }}
{{- if not (hasKey $spec "terminationGracePeriodSeconds") }}
{{- $_ := set $spec "terminationGracePeriodSeconds" (int $context.Values.terminationGracePeriodSeconds) }}
{{- end }}
{{- if not (dig "securityContext" "fsGroup" "" $spec) }}
{{- /* Secrets are readable by their group only. */}}
{{- $_ := set $spec "securityContext" (mustMergeOverwrite (dict "fsGroup" 65532) ($spec.securityContext | default dict)) }}
{{- end }}
{{- toYaml $spec }}
{{- end }}
