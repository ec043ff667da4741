export const CHINESE = {
  // The frame of the page.
  skip: "跳到画面", job: "直播流", views: "视图", cover: "全部遮住", uncover: "恢复显示",
  studio: "工作台", monitor: "运行状况", outputs: "输出", noScript: "此页面需要 JavaScript。不用它也能观看：请看 livefuse 启动时显示的地址。",
  needKey: "此页面需要 livefuse 的密钥。", needKeyHint: "请打开 livefuse 启动时显示的地址，或在此粘贴密钥。",
  key: "密钥", open: "打开", noJobs: "还没有直播流。", noJobsHint: "请启动摄像头，或打开一个流地址。",
  lost: "与 livefuse 的连接已断开，正在重试。", noAnswer: "livefuse 没有应答", noAnswerHint: "它还在运行吗？",
  fault: "页面出错：{text}",
  job_draft: "草稿", job_submitted: "就绪", job_running: "运行中", job_stopped: "已停止", job_failed: "失败", job_queued: "排队等候", job_stopping: "正在停止",
  source_whip: "浏览器或 OBS", source_test: "测试画面", source_demo: "演示",
  health_LOADING: "加载中", health_ONLINE: "正常", health_DEGRADED_INPUT: "输入异常", health_DEGRADED_INFERENCE: "未按要求处理", health_ERROR: "失败", health_STOPPED: "已停止",

  // Studio: the picture.
  before: "处理前", after: "处理后", split: "两幅画面的分界", fullScreen: "全屏", sound: "打开声音", mute: "关闭声音",
  rawElsewhere: "只有本页自己的摄像头才显示处理前的画面。",
  waiting: "画面马上就来…", loading: "正在准备，网络加载完成之前画面会被遮住。",
  isCovered: "已全部遮住。按“恢复显示”继续。",
  jobStopped: "此直播流已停止。", jobFailed: "此直播流失败：{text}", startAgain: "重新开始",
  noViewer: "此浏览器无法显示画面：{text}", noViewerHint: "可以用 VLC 或 OBS 打开这个地址观看：", noWebRtc: "不支持 WebRTC",

  // Studio: where from.
  source: "画面来源", device: "摄像头", camera: "摄像头 {number}", microphone: "包含声音", address: "流地址",
  addressHint: "rtsp://、rtmp://、srt:// 或 http://；要接收推流用 listen:rtmp://127.0.0.1:1935/live/key",
  start: "打开", startCamera: "启动我的摄像头", stop: "停止我的摄像头", starting: "正在启动，加载网络…", asking: "浏览器正在询问是否允许使用摄像头。",
  cameraRefused: "浏览器没有授权摄像头。", cameraRefusedHint: "请在地址栏旁允许，然后再按启动我的摄像头。",
  cameraMissing: "没有找到摄像头。", cameraMissingHint: "请接上摄像头，或填写流地址。",
  cameraBusy: "摄像头正被其他程序使用。", cameraBusyHint: "请关闭该程序，然后再按启动我的摄像头。",
  cameraInsecure: "浏览器只对 https 和 localhost 开放摄像头。", cameraInsecureHint: "请在本机用 http://127.0.0.1:{port} 打开此页面，或通过 https。",
  cameraLost: "摄像头的连接已中断。", cameraLostHint: "请按启动我的摄像头继续。",
  needAddress: "流在哪里？", needAddressHint: "请填写地址，例如 rtsp://192.168.1.20/live",

  // Studio: what is done.
  operations: "按此顺序处理", needed: "供{names}", busy: "正在准备…",
  operation_detect: "检测人脸", operation_align: "定位关键点", operation_identify: "识别人物", operation_background: "隐藏房间", operation_swap: "换脸",
  operation_puppet: "会动的肖像", operation_beautify: "美颜", operation_enhance: "人脸增强", operation_blur: "模糊人脸",
  face: "脸", faceNone: "无", kind_drawn: "绘制", kind_person: "已同意",
  blend: "新脸的比例", whom: "选中的脸", whom_all: "所有的脸", whom_largest: "最大的脸", "whom_left-most": "最左边的脸", whom_id: "按别处的设定", whom_reference: "人物库中的人",
  blurWhom: "模糊谁", blur_auto: "没有换脸的人", blur_all: "所有人", blur_chosen: "选中的脸", blur_others: "除选中的脸以外",
  picture: "使用某人的照片", pictureFile: "照片", drop: "把照片拖到这里，或选择文件",
  consentHint: "必须得到照片中本人的同意；同意书与照片一起保存，到期后不再使用这张脸。",
  consent: "谁同意", consentFor: "同意什么", consentUntil: "有效期至", name: "列表中的名称", use: "使用此照片", needPicture: "哪张照片？", needPictureHint: "请先选择文件。",
  look: "妆容", lookOwn: "自定", amounts: "单项调节", enhancer: "有网络时使用网络",
  group_master: "强度", group_skin: "皮肤", group_tone: "色调", group_shape: "脸型", group_makeup: "妆容", group_colour: "颜色",

  // Health.
  latency: "增加的延迟", fps: "每秒帧数", steps: "每帧的时间花在哪里", budget: "每帧时间：{ms} 毫秒", costsMost: "最耗时：{name}",
  state: "状态", rung: "负载下省略", rungWhy: "原因", rungPresses: "当前压力", dropped: "放弃的帧", droppedNone: "无：所有帧都已显示。", lines: "输入与输出",
  input: "输入", output: "输出", encoder: "编码器", token: "最后一帧的令牌", tokenLog: "最后一帧的处理记录", tokenNone: "还没有帧。",
  what: "内容", why: "原因", took: "毫秒", in: "输入", out: "输出", p50: "p50", p95: "p95", times: "{count} 次", reconnects: "重连次数", reason: "原因", count: "帧数", faces: "人脸", networks: "网络", notes: "说明", viewers: "{count} 人观看",
  noFigures: "没有数据：直播流没有运行。", fellBack: "{provider}，代替 {wanted}",
  step_decode: "解码", step_encode: "编码", step_detect: "检测人脸", step_align: "关键点", step_identify: "识别", step_background: "隐藏房间", step_swap: "换脸", step_puppet: "肖像", step_beautify: "美颜", step_enhance: "增强", step_blur: "模糊",
  rung_everything: "无", rung_enhance_half: "每两帧增强一次", rung_enhance_off: "不增强人脸", rung_detect_5th: "每五帧检测一次人脸", rung_align_half: "每两帧定位一次关键点", rung_frames_half: "只处理一半的帧", rung_cover_only: "每帧全部遮住",
  cause_deadline: "处理时间超过每帧时间", cause_queue_delay: "帧需要等待", cause_memory_constrained: "内存不足", cause_thermal: "机器过热", cause_low_power: "供电不足", cause_gpu_memory: "显存不足",
  drop_late: "来得太迟", drop_late_packets: "数据包太迟", drop_pool: "没有空闲的画面缓冲", drop_pipeline_busy: "人脸处理太慢", drop_encoder_busy: "编码太慢", drop_half_rate: "负载下每两帧省一帧", drop_abandoned: "步骤卡住而放弃", drop_restarting: "流水线重建期间", drop_behind_hold: "比保持的画面更旧", drop_encoder_failed: "编码失败",
  line_connecting: "连接中", line_live: "正常", line_stalled: "没有数据", line_lost: "已断开", line_refused: "被拒绝", line_closed: "已关闭", line_running: "运行中", line_stopped: "已停止", line_failed: "失败",

  // Outputs.
  addresses: "观看与推流", secret: "这些地址含有密钥：拿到它的人可以观看并更改一切。",
  copy: "复制", copied: "已复制", copyFailed: "请选中后按 Ctrl+C", show: "显示", hide: "隐藏",
  row_obsMedia: "OBS 媒体源", row_obsBrowser: "OBS 浏览器源", row_vlc: "VLC 打开网络串流", row_ffplay: "ffplay", row_obsWhip: "OBS 以 WHIP 推流：服务器", row_whipToken: "OBS 以 WHIP 推流：令牌",
  whipOther: "要从 OBS 推流，请先打开地址为 whip: 的流。", openWhip: "打开",
  targets: "推送到", targetsNone: "还没有目标：画面只供观看。", addTarget: "添加目标", add: "添加", remove: "移除", targetHint: "rtmp://服务器/应用/密钥，或文件 show.mp4",
};
