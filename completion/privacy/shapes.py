"""The shapes services document for their keys. Must not know what becomes of them.

None looks far ahead or back without matching: the time for a line grows with its length alone, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_END = r"(?![A-Za-z0-9_-])"
_LOWER = r"(?=[a-z]{0,31}[0-9])[0-9a-z]{32}"


@dataclass(frozen=True, slots=True)
class Shape:
    """`needle` stands in every text that matches. Group 1 is the secret; what names the service stays in sight."""

    kind: str
    needle: str
    pattern: re.Pattern[str]


def _shape(kind: str, needle: str, pattern: str) -> Shape:
    return Shape(kind, needle, re.compile(pattern))


def _prefixed(kind: str, needle: str, prefix: str = "", *, least: int = 5, more: str = "") -> Shape:
    """A prefix that stands nowhere else, then at least `least` letters, digits, `_`, `-` or one of `more`."""
    before = r"(?<![A-Za-z0-9])" if (prefix or needle)[:1].isalnum() or prefix[:1] in "[(" else ""
    return _shape(kind, needle, rf"{before}{prefix or re.escape(needle)}([A-Za-z0-9_{more}-]{{{least},}}+={{0,2}})")


_URL = (
    r"(?i)://[^\s/:@\"'<>?#]{0,200}+:(?!(?:pass(?:word|wd)?|pwd|pw|secret|token|x+|\*+|\.+|%s|\$\w+)@)"
    r"([^\s/@\"'<>?#\[{$]{3,})@(?=[a-z0-9\[.${%])"
)


def _mixed(prefix: str) -> str:
    """A prefix that names of other things have, too: what follows must hold both cases or a digit among letters."""
    return rf"{prefix}(?=[A-Za-z0-9]{{0,60}}(?:[a-z][A-Z]|[A-Z][a-z]|[0-9][A-Za-z]|[A-Za-z][0-9]))"


def _more() -> Iterator[Shape]:
    """Prefixes that stand nowhere else, with what follows as long as the services make it."""
    for kind, needle, least in _LONG:
        yield _prefixed(kind, needle, least=least)
    for kind, needle, prefix in _FORMED:
        yield _prefixed(kind, needle, prefix, more=".")


_LONG = (
    *(("Adafruit key", "aio_", 24), ("CircleCI token", "CCIPAT_", 20)),
    *(("Clojars token", "CLOJARS_", 20), ("Contentful token", "CFPAT-", 20), ("Duffel token", "duffel_live_", 20)),
    *(("Dropbox token", "sl.u.", 60), ("Facebook token", "EAA", 80)),
    *(("Frame.io token", "fio-u-", 20), ("NVIDIA key", "nvapi-", 20), ("Pinecone key", "pcsk_", 20)),
    *(("Prefect key", "pnu_", 20), ("ReadMe key", "rdme_", 20), ("Brevo key", "xkeysib-", 20)),
    *(("Brevo key", "xsmtpsib-", 20), ("Shippo token", "shippo_live_", 20), ("Shippo token", "shippo_test_", 20)),
    *(("Tavily key", "tvly-", 20), ("Together key", "tgp_v1_", 20)),
    *(("Typeform token", "tfp_", 30), ("Vercel token", "vercel_blob_rw_", 20), ("Yandex key", "AQVN", 30)),
    *(("1Password token", "ops_eyJ", 20), ("LangSmith key", "lsv2_", 20)),
)

# The third is a pattern for the prefix.
_FORMED = (
    ("Alibaba key", "LTAI", r"LTAI(?=[A-Za-z0-9]{12})"),
    ("Tencent key", "AKID", r"AKID(?=[A-Za-z0-9]{13})"),
    ("Cloudflare key", "v1.0-", r"v1\.0-(?=[0-9a-f]{20})"),
    ("Dropbox token", "sl.", r"sl\.(?=[A-Za-z0-9_-]{100})"),
    ("EasyPost key", "EZ", r"EZ[AT]K(?=[A-Za-z0-9]{30})"),
    ("Flutterwave key", "FLWSECK", r"FLWSECK(?:_TEST)?-(?=[0-9a-fX])"),
    ("Google token", "1//0", r"1//0(?=[A-Za-z0-9_-]{30})"),
    ("Instagram token", "IGQV", r"IGQV(?=[A-Za-z0-9_-]{60})"),
    ("LaunchDarkly key", "-", r"(?:sdk|mob|api)-(?=[0-9a-f]{8}-[0-9a-f]{4}-4)"),
    ("Mapbox token", "k.eyJ", r"[st]k\.eyJ(?=[A-Za-z0-9_-]{20})"),
    ("Notion key", "secret_", r"secret_(?=[A-Za-z0-9]{43})"),
    ("Pulumi token", "pul-", r"pul-(?=[0-9a-f]{30})"),
    ("Sonar token", "sq", r"sq[apu]_(?=[0-9a-f]{30})"),
    ("Sourcegraph token", "sgp_", r"sgp_(?=[0-9a-zA-Z_]{40})"),
    ("Amazon token", "amzn", r"amzn(?:1\.oa2-cs\.v1|\.mws)\.(?=[0-9a-f]{8})"),
)


SHAPES: tuple[Shape, ...] = (
    _shape("AWS access key", "A", r"(?<![A-Za-z0-9])A(?:KI|SI|BI|CC)A([0-9A-Z]{6,16})(?![A-Za-z0-9])"),
    _shape("AWS access key", "A3T", r"(?<![A-Za-z0-9])A3T([0-9A-Z]{17})(?![A-Za-z0-9])"),
    _prefixed("GitHub token", "gh", "gh[pousr]_"),
    _prefixed("GitHub token", "github_pat_", least=1),
    _prefixed("GitLab token", "gl", "gl(?:pat|dt|rt|rtr|ptt|cbt|soat|agent|imt|ft|oas|ffct|wt)-", more="."),
    _prefixed("GitLab token", "GR1348941", least=8),
    _shape(
        "sk key",
        "sk-",
        r"(?<![A-Za-z0-9])sk-((?=[A-Za-z0-9_-]{0,100}(?:[0-9]|[a-z][A-Z]|[A-Z][a-z]))[A-Za-z0-9_-]{8,}+)",
    ),
    _prefixed("Slack token", "xox", "xox[abeoprs](?:[.]xox[bp])?-"),
    _prefixed("Slack token", "xapp-"),
    _shape("web hook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_/+-]{8,}+)"),
    _shape("web hook", "/webhooks/", r"discord(?:app)?\.com/api/webhooks/([0-9]{6,}/[A-Za-z0-9_-]{0,}+)"),
    _shape("web hook", "/webhook", r"webhook\.office\.com/(webhookb2/[A-Za-z0-9@/_-]{20,}+)"),
    _shape(
        "JSON web token",
        "eyJ",
        r"(?<![A-Za-z0-9_-])eyJ([A-Za-z0-9_-]{8,4000}+\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*)*)",
    ),
    _prefixed("Stripe key", "_live_", "[prs]k_live_", least=3),
    _prefixed("Stripe key", "k_test_", "[rs]k_test_", least=3),
    _prefixed("Stripe key", "whsec_", more="+/"),
    _prefixed("Google key", "AIza", least=8),
    _prefixed("Google key", "GOCSPX-"),
    _prefixed("Google token", "ya29.", more="."),
    _prefixed("npm token", "npm_", _mixed("npm_"), least=8),
    _prefixed("PyPI token", "pypi-Ag"),
    _prefixed("Hugging Face token", "hf_", _mixed("hf_"), least=8),
    _prefixed("SendGrid key", "SG.", _mixed("SG\\."), least=8, more="."),
    _prefixed("SendGrid key", "SG.", r"SG\.(?=[A-Za-z0-9_-]{22}\.)", least=22, more="."),
    _shape("Mailgun key", "key-", r"(?<![A-Za-z0-9])key-([0-9a-f]{24,32})" + _END),
    _shape("Mailchimp key", "-us", rf"(?<![A-Za-z0-9])({_LOWER})-us[0-9]{{1,2}}{_END}"),
    _shape("Twilio key", "SK", rf"(?<![A-Za-z0-9])SK({_LOWER})(?![A-Za-z0-9])"),
    _shape("Twilio account", "AC", rf"(?<![A-Za-z0-9])AC({_LOWER})(?![A-Za-z0-9])"),
    _shape("Telegram token", ":", r"(?<![A-Za-z0-9])([0-9]{8,10}:(?:AA[A-Za-z0-9_-]{0,33}|[A-Za-z0-9_-]{35}))" + _END),
    _shape("Discord token", ".", r"(?<![A-Za-z0-9])([MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+)"),
    _prefixed("Square token", "sq0", "sq0[a-z]{3}-"),
    _prefixed("Square token", "EAAA", least=40),
    _prefixed("Facebook token", "EAACEdEose0cBA", least=8),
    _prefixed("Shopify token", "shp", "shp(?:at|ca|pa|ss)_"),
    _prefixed("DigitalOcean token", "_v1_", "do[opr]_v1_"),
    _prefixed("Databricks token", "dapi", "dapi(?=[0-9a-f]{16})"),
    _prefixed("Doppler token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\."),
    _prefixed("Vault token", "hv", "hv[sbr]\\."),
    _shape("Terraform token", ".atlasv1.", r"(?<![A-Za-z0-9])([A-Za-z0-9]{10,20}\.atlasv1\.[A-Za-z0-9_-]{5,}+)"),
    _prefixed("Atlassian token", "AT", "AT(?:ATT3|CTT3|BB)", least=20, more="="),
    _prefixed("Postman key", "PMAK-"),
    _prefixed("Linear key", "lin_", "lin_(?:api|oauth)_"),
    _prefixed("Notion key", "ntn_", least=20),
    _prefixed("Grafana token", "gl", "gl(?:sa|c)_"),
    _prefixed("New Relic key", "NR", "NR(?:AK|AA|BR|RA|II)-"),
    _prefixed("Sentry token", "sntr", "sntr[ysu]_", more="="),
    _prefixed("Replicate token", "r8_", least=20),
    _prefixed("Groq key", "gsk_", least=20),
    _prefixed("xAI key", "xai-", least=20),
    _prefixed("Perplexity key", "pplx-", least=20),
    _prefixed("Supabase token", "sb", "sb(?:p|_secret|_publishable)_"),
    _prefixed("PlanetScale token", "pscale_", "pscale_(?:tkn|oauth|pw)_", more="."),
    _prefixed("Tailscale key", "tskey-"),
    _prefixed("age key", "AGE-SECRET-KEY-1"),
    _prefixed("Artifactory token", "AKC", _mixed("AKC"), least=8),
    _prefixed("Artifactory token", "AP", "AP(?=[0-9A-F])(?=(?:[A-Za-z]{0,40}[0-9]){3})", least=20),
    _prefixed("Artifactory token", "cmVmdGtuOj", least=20),
    _prefixed("Dynatrace token", "dt0", r"dt0[a-z]{1,2}[0-9]{2}\.", more="."),
    _prefixed("Docker token", "dckr_", "dckr_(?:pat|oat)_"),
    _prefixed("RubyGems key", "rubygems_"),
    _prefixed("Heroku key", "HRKU-"),
    _prefixed("Figma token", "figd_"),
    _prefixed("Airtable token", "pat", r"pat[A-Za-z0-9]{14}\.", least=20),
    *_more(),
    _prefixed("Fly token", "fm2_", least=30, more="+/"),
    # a private key or a certificate, encoded once more
    _shape("encoded key", "LS0tLS1CRUdJTi", r"LS0tLS1CRUdJTi([A-Za-z0-9+/_-]{12,}+={0,2})"),
    _shape("Baidu key", "bce-v3/ALTAK-", r"bce-v3/ALTAK-([A-Za-z0-9/_-]{8,}+)"),
    # of Azure: two marks that its generator puts into each
    _shape("Azure secret", "Q~", r"(?<![A-Za-z0-9_~.-])([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{20,}+)"),
    *(
        _shape(
            "Azure key", mark, rf"(?<![A-Za-z0-9+/_-])([A-Za-z0-9+/_-]{{30,90}}{mark}[A-Za-z0-9+/_-]{{4,30}}={{0,2}})"
        )
        for mark in ("AzFu", "AzSe", "AzCa", "ACDb", "JQQJ99", "ACRA")
    ),
    # where a secret stands in a URL or a header
    _shape("password in a URL", "://", _URL),
    # as it is being typed: no port
    _shape(
        "password in a URL", "://", r"://[^\s/:@\"'<>?#]{1,200}+:(?=[^\s]{0,60}[A-Za-z])([^\s/@\"'<>?#\[{$:]{7,}+)$"
    ),
    _shape("signature in a URL", "ig", r"[?&;\"'](?:sig|[Ss]ignature|X-Amz-Signature)=([A-Za-z0-9%+/=_-]{16,}+)"),
    _shape(
        "bearer token",
        "earer",
        r"[Bb]earer[ \t]+((?=[A-Za-z0-9._~+/-]{0,200}(?:[0-9]|[a-z][A-Z]))[A-Za-z0-9._~+/-]{8,}+=*)",
    ),
    _shape("basic credentials", "asic", r"[Bb]asic[ \t]+((?=[A-Za-z0-9+/]{0,200}[0-9=])[A-Za-z0-9+/]{12,}+={0,2})"),
)
