// Before and after, where the picture comes from, and beside them what is done to the faces.

import { createControls } from "/web/controls.js";
import { make } from "/web/dom.js";
import { CAMERA_JOB, createSource } from "/web/source.js";
import { createStage } from "/web/stage.js";

/** Build the view; `kept` is the camera that another one has left. */
export function createStudio(root, page, kept) {
  let raw = null;
  const stage = createStage(page);
  const showBefore = () => stage.showBefore(page.state.job === CAMERA_JOB ? raw : null);
  const source = createSource(page, (camera) => {
    raw = camera;
    showBefore();
  }, kept);
  const controls = createControls(page);
  const show = () => stage.show(page.getJob(), page.state.figures);
  root.append(make("div", { class: "columns" }, make("div", {}, stage.element, source.element), controls.element));
  source.show();
  return {
    leave: () => {
      stage.hangUp();
      return source.camera;
    },
    startCamera: source.start,
    hangUp: stage.hangUp,
    onBack: source.onBack,
    onEnd: source.onEnd,
    onJob: (job, isBack) => {
      stage.watch(job, isBack);
      showBefore();
      controls.onJob(job);
      show();
    },
    onJobs: () => {
      controls.onJobs();
      show();
    },
    onFigures: (figures) => {
      controls.onFigures(figures);
      show();
    },
  };
}
