{{/* Names and labels. */}}
{{- define "sallyport.fullname" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains "sallyport" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-sallyport" .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "sallyport.selectorLabels" -}}
{{- if .Values.sidecar.enabled }}
{{- if not .Values.sidecar.podLabels }}{{ fail "sidecar.podLabels: say which pods carry Sallyport" }}{{ end }}
{{- if .Values.receiver.container }}
{{- fail "receiver.container: with sidecar.enabled this chart makes no pod for it; write it into yours, or leave sidecar.enabled out" }}
{{- end }}
{{- toYaml .Values.sidecar.podLabels }}
{{- else -}}
app.kubernetes.io/name: sallyport
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}
{{- end }}

{{- define "sallyport.labels" -}}
app.kubernetes.io/name: sallyport
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/*
Name, labels and annotations of an object. Takes a map: `context`, and where there are any `name` (or `end`, of the usual name), `own` labels and
annotations of the chart, and `labels` and `annotations` of the values.
*/}}
{{- define "sallyport.metadata" -}}
{{- $values := .context.Values }}
{{- $own := .own | default dict -}}
name: {{ .name | default (printf "%s%s" (include "sallyport.fullname" .context) (.end | default "")) }}
labels:
  {{- $labels := $own.labels | default dict | merge (include "sallyport.labels" .context | fromYaml) }}
  {{- include "sallyport.extended" (list "label" $labels $values.commonLabels .labels) | nindent 2 }}
{{- with include "sallyport.extended" (list "annotation" ($own.annotations | default dict) $values.commonAnnotations .annotations) }}
annotations: {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
A map of the chart with what the values add to it, as YAML. Takes a list: what a key of it is, the chart's own map, what all objects get, and what this
one gets, which wins. Nobody adds a key that the chart sets itself: selectors and reloads go by them.
*/}}
{{- define "sallyport.extended" -}}
{{- $own := index . 1 }}
{{- $added := merge (dict) (index . 3 | default dict) (index . 2) }}
{{- range $key, $_ := $added }}
{{- if hasKey $own $key }}{{ fail (printf "%s %q is the chart's own: take another name" (index $ 0) $key) }}{{ end }}
{{- end }}
{{- with merge (dict) $own $added }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "sallyport.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "sallyport.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "sallyport.configMapName" -}}
{{- .Values.existingConfigMap | default (include "sallyport.fullname" .) }}
{{- end }}

{{- define "sallyport.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion }}
{{- if .Values.image.digest }}{{ printf "%s:%s@%s" .Values.image.repository $tag .Values.image.digest }}
{{- else }}{{ printf "%s:%s" .Values.image.repository $tag }}
{{- end }}
{{- end }}

{{/* Whether Sallyport runs beside the service, and so ends after it. */}}
{{- define "sallyport.isSidecar" -}}
{{- if or .Values.sidecar.enabled .Values.receiver.container }}true{{ end }}
{{- end }}
