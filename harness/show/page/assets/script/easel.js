// A picture that may take longer to paint than a frame. The last picture is shown at once, moved and scaled to the
// current view; the new picture is painted in slices and replaces it when complete. A picture that was
// begun is finished, so that continuous panning shows slightly outdated pictures instead of none.

const AT_ONCE = 100_000; // blocks that are painted at once, in a frame
const SLICE = 12; // milliseconds of a frame for all pictures together

// Easel paints into a canvas.
class Easel {
  constructor(canvas, done) {
    this.canvas = canvas;
    this.done = done; // called with every picture that is whole
    this.back = document.createElement("canvas");
    this.shown = null; // the picture in back
    this.work = null; // the one that is painted
    this.next = null; // what is painted after it
  }

  // paint starts a picture; see Painting, without its image. If now is set it is painted at once.
  paint(subject, now) {
    const { map, tints, colors } = subject;
    this.subject = this.next = subject;
    const same = (p) => p && p.view.even === subject.view.even && p.w === subject.w && p.h === subject.h;
    if (!same(this.shown)) this.shown = null;
    if (!same(this.work) || this.work.map !== map || this.work.tints !== tints || this.work.colors.paper !== colors.paper)
      this.work = null;
    if (now || map.rects.y.length <= AT_ONCE) {
      this.work = null;
      this.step(Infinity);
    }
    this.show();
    if (this.next) EASELS.add(this);
  }

  // step paints until a deadline and reports whether the picture is complete.
  step(until) {
    while (this.work || this.next) {
      if (!this.work) {
        const { next } = this;
        const image = new ImageData(next.w, next.h);
        this.work = Object.assign(new Painting({ ...next, image }), { w: next.w, h: next.h });
        this.next = null;
      }
      if (!this.work.go(until)) return false;
      const { image } = this.work;
      Object.assign(this.back, { width: image.width, height: image.height });
      this.back.getContext("2d").putImageData(image, 0, 0);
      this.shown = this.work;
      this.work = null;
      this.done(this.shown);
    }
    return true;
  }

  // show draws the last picture at the current position of its part of the map.
  show() {
    const { canvas, subject, shown } = this;
    const g = canvas.getContext("2d");
    const { view, w, h } = subject;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, w, h);
    if (!shown) return;
    const was = shown.view;
    const wide = (view.x1 - view.x0) / w;
    const high = (view.y1 - view.y0) / h;
    g.imageSmoothingEnabled = false;
    g.drawImage(
      this.back,
      (was.x0 - view.x0) / wide,
      (view.y1 - was.y1) / high,
      (was.x1 - was.x0) / wide,
      (was.y1 - was.y0) / high,
    );
  }
}

// EASELS are the unfinished easels, which share the time of a frame. The page exposes their number.
const EASELS = {
  busy: new Set(),

  // add schedules an easel for the next frame.
  add(easel) {
    if (!this.busy.size) requestAnimationFrame(() => this.frame());
    this.busy.add(easel);
    document.documentElement.dataset.painting = this.busy.size;
  },

  // frame paints for a share of a frame.
  frame() {
    const until = performance.now() + SLICE;
    for (const easel of [...this.busy]) {
      const { shown } = easel;
      this.busy.delete(easel); // it goes on behind the others
      if (!easel.step(until)) this.busy.add(easel);
      if (easel.shown !== shown) easel.show();
    }
    document.documentElement.dataset.painting = this.busy.size;
    if (this.busy.size) requestAnimationFrame(() => this.frame());
  },
};
