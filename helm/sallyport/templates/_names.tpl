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
{{- toYaml .Values.sidecar.podLabels }}
{{- else -}}
app.kubernetes.io/name: sallyport
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- end }}

{{- define "sallyport.labels" -}}
app.kubernetes.io/name: sallyport
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
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
