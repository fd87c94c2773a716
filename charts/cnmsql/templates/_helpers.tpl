{{- define "cnmsql.name" -}}
{{ .Release.Name }}-operator
{{- end }}

{{- define "cnmsql.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "cnmsql.selector" -}}
app.kubernetes.io/name: cnmsql
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "cnmsql.labels" -}}
{{ include "cnmsql.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
