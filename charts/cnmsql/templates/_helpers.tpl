{{- /* The longest name made of this one is that of the Service: 63 characters with "-operator-metrics". */ -}}
{{- define "cnmsql.name" -}}
{{- if or (gt (len .Release.Name) 46) (not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" .Release.Name)) }}
{{- fail (printf "the release name %q cannot begin the name of a Service: choose another one, of at most 46 lower case letters, digits and dashes, that begins with a letter" .Release.Name) }}
{{- end }}
{{- .Release.Name }}-operator
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
