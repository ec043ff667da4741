// The page's words, English and Chinese. A key that is missing here is a fault (a test looks).

const EN = {
  skip: "Skip to the picture", job: "Stream", cover: "Cover everything", uncover: "Show again",
  studio: "Studio", monitor: "Health", outputs: "Outputs",
  needKey: "This page needs the key of livefuse.", needKeyHint: "Open the address that livefuse printed when it started, or paste the key here.",
  key: "Key", open: "Open", noJobs: "No stream is running yet. Start your camera.", over: "The stream is over.",
  lost: "The connection to livefuse is lost. It is tried again.", fault: "Something on this page failed: {text}",
  before: "Before", after: "After", split: "Where the two pictures meet", fullScreen: "Full screen", sound: "Sound on", mute: "Sound off",
  rawElsewhere: "The picture before is only shown for this page's own camera.",
  source: "Where from", camera: "My camera", stream: "A stream's address", device: "Camera", microphone: "With sound", address: "Address",
  start: "Start", startCamera: "Start my camera", stop: "Stop", starting: "Starting: networks are being loaded…", asking: "Your browser asks whether the camera may be used.",
  cameraRefused: "The browser does not give the camera.", cameraRefusedHint: "Allow it beside the address bar, then press Start again.",
  cameraMissing: "There is no camera here.", cameraMissingHint: "Plug one in, or give a stream's address.",
  cameraBusy: "The camera is used by another program.", cameraBusyHint: "Close that program, then press Start again.",
  operations: "What is done, in this order", face: "Whose face is shown", faceNone: "none", drawn: "drawn", person: "agreed",
  picture: "Another picture: drop it here, or choose a file", consent: "Who agreed", consentFor: "To what", consentUntil: "Until",
  consentHint: "Only with the consent of the person shown. It is kept with the picture.", use: "Use this picture", name: "Call it",
  blend: "How much of the new face", whom: "For whom", all: "everybody", largest: "the largest face", leftmost: "the face furthest left",
  blurWhom: "Blur covers", auto: "whoever is left", chosen: "the chosen", others: "the others",
  look: "Look", lookNone: "none", amounts: "Single amounts", reset: "As the look says", enhancer: "Enhance with a network, where one is there",
  detect: "find faces", align: "landmarks", identify: "who is it", background: "hide the room", swap: "another face", puppet: "portrait moves", beautify: "beautify", enhance: "clearer", blur: "blur",
  skin: "Skin", tone: "Tone", shape: "Shape", makeup: "Make-up", master: "Strength", colour: "Colours",
  latency: "Added latency", fps: "Frames a second", steps: "Where the time goes", budget: "a frame's time", rung: "Spared under load", rungNone: "nothing", dropped: "Frames given up", none: "none",
  input: "Input", output: "Output", state: "State", token: "Token of the last frame", tokenLog: "What was done to it", when: "when", what: "what", why: "why", took: "ms",
  in: "in", out: "out", p50: "p50", p95: "p95", reconnects: "reconnects", reason: "reason", count: "frames", faces: "faces", networks: "Networks", costsMost: "costs most",
  copy: "Copy", copied: "Copied", obsMedia: "OBS, media source", obsBrowser: "OBS, browser source", obsWhip: "OBS, as WHIP server (send to us)", whipToken: "with this bearer token", ffplay: "ffplay", vlc: "VLC, open network stream",
  targets: "Sends to", addTarget: "Add a target", add: "Add", remove: "Remove", targetHint: "rtmp://server/app/key, or a file",
  LOADING: "loading", ONLINE: "online", DEGRADED_INPUT: "input in trouble", DEGRADED_INFERENCE: "networks in trouble", ERROR: "failed",
};

const ZH = {
  skip: "跳到画面", job: "直播流", cover: "全部遮住", uncover: "恢复显示",
  studio: "工作台", monitor: "运行状况", outputs: "输出",
  needKey: "此页面需要 livefuse 的密钥。", needKeyHint: "请打开 livefuse 启动时显示的地址，或在此粘贴密钥。",
  key: "密钥", open: "打开", noJobs: "还没有直播流，请启动摄像头。", over: "直播流已结束。",
  lost: "与 livefuse 的连接已断开，正在重试。", fault: "页面出错：{text}",
  before: "处理前", after: "处理后", split: "两幅画面的分界", fullScreen: "全屏", sound: "打开声音", mute: "关闭声音",
  rawElsewhere: "只有本页自己的摄像头才显示处理前的画面。",
  source: "来源", camera: "我的摄像头", stream: "流地址", device: "摄像头", microphone: "包含声音", address: "地址",
  start: "开始", startCamera: "启动我的摄像头", stop: "停止", starting: "正在启动：加载网络…", asking: "浏览器正在询问是否允许使用摄像头。",
  cameraRefused: "浏览器没有授权摄像头。", cameraRefusedHint: "请在地址栏旁允许，然后再按开始。",
  cameraMissing: "没有找到摄像头。", cameraMissingHint: "请接上摄像头，或填写流地址。",
  cameraBusy: "摄像头正被其他程序使用。", cameraBusyHint: "请关闭该程序，然后再按开始。",
  operations: "按此顺序处理", face: "显示谁的脸", faceNone: "无", drawn: "绘制", person: "已同意",
  picture: "其他图片：拖到这里或选择文件", consent: "谁同意", consentFor: "同意什么", consentUntil: "有效期至",
  consentHint: "必须得到本人同意，同意书与图片一起保存。", use: "使用此图片", name: "名称",
  blend: "新脸的比例", whom: "作用于", all: "所有人", largest: "最大的脸", leftmost: "最左边的脸",
  blurWhom: "模糊遮住", auto: "其余的人", chosen: "选中的人", others: "其他人",
  look: "妆容", lookNone: "无", amounts: "单项调节", reset: "按妆容设定", enhancer: "有网络时用网络增强",
  detect: "检测人脸", align: "关键点", identify: "识别", background: "隐藏背景", swap: "换脸", puppet: "肖像驱动", beautify: "美颜", enhance: "增强", blur: "模糊",
  skin: "皮肤", tone: "色调", shape: "脸型", makeup: "妆容", master: "强度", colour: "颜色",
  latency: "增加的延迟", fps: "每秒帧数", steps: "时间花在哪里", budget: "每帧时间", rung: "负载下省略", rungNone: "无", dropped: "放弃的帧", none: "无",
  input: "输入", output: "输出", state: "状态", token: "最后一帧的令牌", tokenLog: "处理记录", when: "时间", what: "内容", why: "原因", took: "毫秒",
  in: "输入", out: "输出", p50: "p50", p95: "p95", reconnects: "重连次数", reason: "原因", count: "帧数", faces: "人脸", networks: "网络", costsMost: "最耗时",
  copy: "复制", copied: "已复制", obsMedia: "OBS 媒体源", obsBrowser: "OBS 浏览器源", obsWhip: "OBS 以 WHIP 推流给我们", whipToken: "使用此令牌", ffplay: "ffplay", vlc: "VLC 打开网络串流",
  targets: "推送到", addTarget: "添加目标", add: "添加", remove: "移除", targetHint: "rtmp://服务器/应用/密钥，或文件",
  LOADING: "加载中", ONLINE: "正常", DEGRADED_INPUT: "输入异常", DEGRADED_INFERENCE: "网络异常", ERROR: "失败",
};

const LANGUAGES = { en: EN, zh: ZH };
const KEPT = "livefuse-language";

let language = localStorage.getItem(KEPT) ?? (navigator.language.startsWith("zh") ? "zh" : "en");

export const isChinese = () => language === "zh";

/** Return the words for `key`, with {names} filled in. */
export function say(key, values = {}) {
  const text = LANGUAGES[language]?.[key] ?? EN[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** Put the words into everything that has a data-word. */
export function putWords(root = document) {
  document.documentElement.lang = isChinese() ? "zh-CN" : "en";
  for (const element of root.querySelectorAll("[data-word]")) {
    element.textContent = say(element.dataset.word);
  }
}

export function changeLanguage() {
  language = isChinese() ? "en" : "zh";
  localStorage.setItem(KEPT, language);
}
