package async

import "strings"

// changeImage of the spec: all Pods that are there are out of date. The first one is what they run.
func (w *world) changeImage(image string) {
	isFirst := w.image == ""
	w.image = image
	for _, in := range w.insts {
		if isFirst {
			in.pod.Image, in.truth.Version = image, versionOf(image)
		}
		in.pod.Current = in.pod.Image == image
		w.hear(in)
	}
}

// makeFrom has a Pod made from another image than the spec's.
func (w *world) makeFrom(in *inst, image string) {
	if image != "" {
		in.pod.Image, in.pod.Current = image, image == w.image
		in.truth.Version = versionOf(image)
	}
}

// versionOf an image: "8.4.9" of "mysql:8.4.9".
func versionOf(image string) string {
	_, version, _ := strings.Cut(image, ":")
	return version
}
