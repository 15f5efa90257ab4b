// A picture that may take longer to paint than a frame. The last picture is shown at once, moved and scaled to the
// current view; the new picture is painted in slices and replaces it when complete. A picture that was
// begun is finished, so that continuous panning shows slightly outdated pictures instead of none.

const AT_ONCE = 100_000; // blocks that are painted at once, in a frame
const SLICE = 12; // milliseconds of a frame for all pictures together

// Painter paints into a canvas.
class Painter {
  constructor(canvas, done) {
    this.canvas = canvas;
    this.done = done; // called with every complete painting
    this.buffer = document.createElement("canvas");
    this.shown = null; // the painting in buffer
    this.current = null; // the unfinished painting
    this.next = null; // the subject to paint next
  }

  // paint starts a picture; see Painting, without its image. If now is set it is painted at once.
  paint(subject, now) {
    const { map, tints, colors } = subject;
    this.subject = this.next = subject;
    const same = (p) => p && p.view.linear === subject.view.linear && p.w === subject.w && p.h === subject.h;
    if (!same(this.shown)) this.shown = null;
    if (!same(this.current) || this.current.map !== map || this.current.tints !== tints || this.current.colors.paper !== colors.paper)
      this.current = null;
    if (now || map.rects.y.length <= AT_ONCE) {
      this.current = null;
      this.step(Infinity);
    }
    this.show();
    if (this.next) PAINT_QUEUE.add(this);
  }

  // step paints until a deadline and reports whether the picture is complete.
  step(until) {
    while (this.current || this.next) {
      if (!this.current) {
        const { next } = this;
        const image = new ImageData(next.w, next.h);
        this.current = Object.assign(new Painting({ ...next, image }), { w: next.w, h: next.h });
        this.next = null;
      }
      if (!this.current.go(until)) return false;
      const { image } = this.current;
      Object.assign(this.buffer, { width: image.width, height: image.height });
      this.buffer.getContext("2d").putImageData(image, 0, 0);
      this.shown = this.current;
      this.current = null;
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
      this.buffer,
      (was.x0 - view.x0) / wide,
      (view.y1 - was.y1) / high,
      (was.x1 - was.x0) / wide,
      (was.y1 - was.y0) / high,
    );
  }
}

// PAINT_QUEUE are the painters with an unfinished painting, which share the time of a frame. The page exposes their number.
const PAINT_QUEUE = {
  busy: new Set(),

  // add schedules an painter for the next frame.
  add(painter) {
    if (!this.busy.size) requestAnimationFrame(() => this.frame());
    this.busy.add(painter);
    document.documentElement.dataset.painting = this.busy.size;
  },

  // frame paints for a share of a frame.
  frame() {
    const until = performance.now() + SLICE;
    for (const painter of [...this.busy]) {
      const { shown } = painter;
      this.busy.delete(painter); // an unfinished one goes to the end of the queue
      if (!painter.step(until)) this.busy.add(painter);
      if (painter.shown !== shown) painter.show();
    }
    document.documentElement.dataset.painting = this.busy.size;
    if (this.busy.size) requestAnimationFrame(() => this.frame());
  },
};
