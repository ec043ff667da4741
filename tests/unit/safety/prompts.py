"""Some hundred prompts for looks that name nobody, as people write them: English and Chinese."""

from __future__ import annotations

from itertools import product

_WRITTEN = """
more confident, a slight smile, professional
soft morning light, natural skin, no makeup
put in some blush and delete the dark circles
delete me from the background
clear skin, bright eyes, a little lip colour
a warm golden hour glow with subtle freckles
make the jaw slimmer and the eyes a bit larger
Japanese style gentle make-up
Korean glass skin, gradient lips
western three-dimensional features, contour on the nose
smoky eyes for a night club
bridal look, pearl highlights, rose lips
old Hollywood glamour, red lips, winged eyeliner
vintage 1920s flapper with a cupid's bow
punk rock, black eyeliner, pale skin
office look, matte, no shine
wedding guest, peach tones
fresh after a run, slightly flushed cheeks
tired but happy, keep the wrinkles
as if I slept eight hours
remove the shine on my forehead
smooth the skin a little, keep the pores
lift the corners of the mouth
friendly teacher, calm, approachable
news anchor, even light, neutral tone
gamer streamer, neon reflections, cool tone
cosy autumn look with brown tones
winter look, cold light, rosy nose
summer tan, sun-kissed cheeks
freckles over nose and cheeks
cat eye, thick lashes, nude lips
dolly eyes with long lower lashes
editorial high-fashion, bleached brows
K-pop idol style, glossy lips, shimmer on lids
cottage core, soft pink, dewy
goth, deep purple lips, white foundation
the natural look of a spring morning
a little younger, not too much
older and wiser, grey at the temples
less red, more even skin
make me look rested for the meeting
brighten under the eyes
slim face, small chin, high nose bridge
musk and amber, a warm mood
my trump card is my smile, so brighten it
play the trumpet with rosy cheeks
a swift touch of blush
styles of the nineties, brown lip liner
the jobs interview look
gates open, stage light, sparkle
a prince of the night, silver shimmer
queen of hearts, red and white
king charles spaniel ears are not needed
black pink colours, black liner and pink lips
lee side of the mountain, cold light
ma chérie, a French look with red lips
jack of all trades, plain look
jolie et naturelle
au naturel, sans maquillage
rose gold lids and nude lips
lisa's birthday party look
adelaide summer tan
madonna lily white skin
modern minimalism
putting on a brave face
be yonder and bright
will you smooth my skin
will smile more
ed, she ran for the bus, so flushed cheeks
park avenue princess makeup
wood tones, tiger stripes in the eyeliner
tom and jerry stickers? no, just soft skin
the cruise ship captain look, tanned
hanks of hair, frizzy
depp dark lashes
brad awls and nails, workshop look
hair like a lion, mane and all
hawking radiation as a glow
einstein was not a stylist
xi, omicron and pi on the cheeks
biding my time, calm
obi-wan style beard? no, clean shave
merkle trees and nerd glasses
macaron colours, pastel
sunday best, neat
star mer, sea glow
scholar look, glasses, soft light
mode and elegance
jordan river sunset light
curry yellow lids
bold brows, james dean jacket
messy hair, fresh face
ronald the clown make-up
neymarvellous is not a word
federal blue eyeliner
nadir and zenith, dark to light
serene, williamsburg style
beck and ham sandwich colours
opera-free zone is a joke
欧美立体五官
韩系清透裸妆
温柔的日系妆容感
自信一点，微微一笑，职业感
自然光，皮肤白皙，淡妆
把黑眼圈去掉一点
眼睛大一点，脸小一点
清纯学生妆
复古港风妆容
新中式妆容，眉毛细长
水光肌，果冻唇
冷白皮，雾面唇釉
元气少女腮红
小烟熏，深邃眼窝
晒伤妆，雀斑
职场干练，哑光底妆
新娘妆，珍珠高光
约会妆，桃粉色系
懒人出门妆
素颜但气色好
睡足八小时的样子
脸部轮廓清晰一些
鼻梁挺一点，不要太夸张
保留法令纹，不要过度磨皮
把额头的油光去掉
嘴角上扬，亲切自然
新闻主播的稳重感
游戏主播，霓虹反光
古装仙侠，眉间花钿
敦煌飞天妆
京剧花旦的眼妆
秋天的奶茶色
冬日冷调，鼻尖微红
夏天小麦色皮肤
猫眼眼线，浓密睫毛
洋娃娃般的眼睛
年轻三岁就好
成熟稳重一点
皮肤均匀，少一点红
开会前精神一点
望子成龙的家长范儿
女王范，红唇
王者风范，非凡气质
马上出门的快手妆
云朵般的柔光
雷厉风行的女强人
龙年喜庆妆
成熟龙纹身男的硬朗
周末慵懒感
杰出青年的证件照
德系冷峻
章法有度的妆面
子夜蓝眼影
怡人的清香感
冰冰凉凉的冷色调
小龙女的白衣仙气
星星眼，驰名的网红妆
发型不变，润唇
国风荣耀
曼妙身姿，玉肌
朝霞伟岸
连衣裙配杰作
姚黄魏紫，明艳
刘海不要动
翔实自然
林间阳光，丹凤眼
谷雨时节的爱意，清凌凌
任何非主流都不要
李子色的唇
马到成功的化妆
腾云驾雾的仙气
东方美人，强气场
习惯性微笑，近景平光
江边泽国，民族风
毛茸茸的帽子，泽泻色
胡子刮干净，锦绣涛声
温暖的家宝宝妆
特别朗朗上口的妆
普通京味儿
拜托灯光师登场
奥运巴士马拉松的健康肤色
金色正面光，恩爱夫妻妆
安静倍感晋级
梅花西妆
罗衣纳彩，尔雅多姿
科学比例的五官
库存里的口红
"""
_TONES = ("soft", "cool", "warm", "bold", "dewy", "matte", "natural", "glossy")
_PARTS = ("skin", "lips", "brows", "eyes", "cheeks", "lashes")
_WHEN = ("for a morning stream", "for tonight")
_COLOURS = ("奶茶色", "玫瑰色", "豆沙色", "珊瑚色", "焦糖色", "樱花粉")
_PLACES = ("口红", "眼影", "腮红", "眉毛")
_HOW = ("，自然一点", "，浓一点", "，清透感")

INNOCENT: tuple[str, ...] = (
    *(line for line in _WRITTEN.splitlines() if line),
    *(f"{tone} {part} {when}" for tone, part, when in product(_TONES, _PARTS, _WHEN)),
    *("".join(words) for words in product(_COLOURS, _PLACES, _HOW)),
)
