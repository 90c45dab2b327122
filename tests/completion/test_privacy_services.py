"""Keys as the services make them, in code as people write it: no 12 code points of one are left."""

from __future__ import annotations

import random
import string
import uuid
from collections.abc import Callable

import pytest

from completion.privacy import redact

PART = 12
ALNUM, LOWER, UPPER = string.ascii_letters + string.digits, string.ascii_lowercase, string.ascii_uppercase
HEX, BASE64, URLSAFE = "0123456789abcdef", ALNUM + "+/", ALNUM + "_-"


def of(letters: str, count: int) -> Callable[[random.Random], str]:
    return lambda rng: "".join(rng.choices(letters, k=count))


def parts(*every: str | tuple[str, int]) -> Callable[[random.Random], str]:
    return lambda rng: "".join(each if isinstance(each, str) else of(*each)(rng) for each in every)


def unique(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


# Known by themselves, wherever they stand. What stands before `|` names the service and may be seen.
EVIDENT: dict[str, Callable[[random.Random], str]] = {
    "AWS": parts("AKIA|", (UPPER + "234567", 16)),
    "AWS, other": parts("A3T|", (UPPER + string.digits, 17)),
    "GitHub": parts("ghs_|", (ALNUM, 36)),
    "GitLab": parts("glpat-|", (URLSAFE, 20)),
    "GitLab, runner": parts("GR1348941|", (URLSAFE, 20)),
    "GitLab, job": parts("glcbt-|", (ALNUM, 2), "_", (URLSAFE, 20)),
    "Slack": parts("xoxp-|", (string.digits, 12), "-", (string.digits, 12), "-", (ALNUM, 32)),
    "Slack, workflow": parts("hooks.slack.com/workflows/|T", (UPPER, 9), "/A", (UPPER, 9), "/", (ALNUM, 24)),
    "Stripe": parts("rk_live_|", (ALNUM, 24)),
    "Twilio": parts("SK|1", (LOWER + string.digits, 31)),
    "SendGrid": parts("SG.|", (URLSAFE, 22), ".", (URLSAFE, 43)),
    "Mailchimp": parts("1", (LOWER + string.digits, 31), "|-us12"),
    "npm": parts("npm_|", (ALNUM, 35), "1"),
    "PyPI": parts("pypi-AgEIcHlwaS5vcmc|", (URLSAFE, 80)),
    "Discord": parts("M", (ALNUM, 23), ".G", (URLSAFE, 5), ".", (ALNUM, 27)),
    "Telegram": parts((string.digits, 9), ":", (ALNUM, 35)),
    "Square": parts("sq0csp-|", (URLSAFE, 43)),
    "Artifactory": parts("AKC|1a", (ALNUM, 69)),
    "Artifactory, reference": parts("cmVmdGtuOjAxOj|", (ALNUM, 50)),
    "OpenAI": parts("sk-|", (ALNUM, 20), "T3BlbkFJ", (ALNUM, 20)),
    "Google, refreshed": parts("1//0|", (URLSAFE, 60)),
    "Azure, of an application": parts("aB3", "8Q~", (URLSAFE, 34)),
    "Azure, of a function": parts((URLSAFE, 44), "AzFu", (ALNUM, 6), "=="),
    "Azure DevOps": parts((ALNUM, 52), "JQQJ99B", (ALNUM, 25)),
    "Dropbox": parts("sl.|", (URLSAFE, 130)),
    "Cloudflare": parts("v1.0-|", (HEX, 24), "-", (HEX, 146)),
    "Terraform": parts((ALNUM, 14), ".atlasv1.", (URLSAFE, 67)),
    "LaunchDarkly": lambda rng: f"sdk-|{unique(rng)}",
    "LangSmith": parts("lsv2_|pt_", (HEX, 32), "_", (HEX, 10)),
    "Mapbox": parts("sk.eyJ|", (ALNUM, 60), ".", (URLSAFE, 22)),
    "Pulumi": parts("pul-|", (HEX, 40)),
    "Shippo": parts("shippo_live_|", (HEX, 40)),
    "Sonar": parts("squ_|", (HEX, 40)),
    "Sourcegraph": parts("sgp_|", (HEX, 16), "_", (HEX, 40)),
    "Baidu": parts("bce-v3/ALTAK-|", (ALNUM, 21), "/", (HEX, 40)),
    "Tencent": parts("AKID|", (ALNUM, 32)),
    "NVIDIA": parts("nvapi-|", (URLSAFE, 64)),
}

# Known by the name beside them.
NAMED: dict[str, tuple[str, Callable[[random.Random], str]]] = {
    "AWS": ("aws_secret_access_key", parts((BASE64, 39), "1")),
    "Azure storage": ("AccountKey", parts((BASE64, 86), "==")),
    "Twilio": ("TWILIO_AUTH_TOKEN", of(HEX, 32)),
    "npm": ("NPM_TOKEN", unique),
    "Cloudant": ("cloudant_api_key", of(LOWER, 24)),
    "Cloudant, password": ("cl_pw", of(HEX, 64)),
    "IBM": ("ibm_api_key", parts((URLSAFE, 43), "1")),
    "IBM object storage": ("cos_secret_access_key", of(HEX, 48)),
    "SoftLayer": ("softlayer_api_key", of(LOWER + string.digits, 64)),
    "Artifactory": ("jfrog_pw", parts("AP4a1", (ALNUM, 30))),
    "Azure DevOps": ("AZURE_DEVOPS_EXT_PAT", parts("a2b3c4d5", (LOWER + "234567", 44))),
    "Datadog": ("dd_app_key", of(HEX, 32)),
    "password": ("dbPass", parts((ALNUM, 15), "9%K_w")),
    "in Spanish": ("contrase\u00f1a", parts((ALNUM, 15), "9%K_w")),
}

# In code, in settings, on command lines; @ is the name, and $ the secret.
EVIDENT_PLACES = (
    'call("$")',
    "# use $ for now",
    "x = ['$', 1]",
    "X=$",
    "x: $",
    "-H 'X-Key: $'",
    "<k>$</k>",
    "?k=$&a=1",
)
NAMED_PLACES = (
    '@ = "$"',
    "@: str = '$'  # live",
    '{"a": 1, "@": "$", "b": 2}',
    "connect(@='$', timeout=3)",
    "export @=$",
    "  @: $",
    '@ := "$"',
    'private static final String @ = "$";',
    'char @[128] = "$";',
    'std::string @("$");',
    'var @ = @"$";',
    'let @: &\'static str = "$";',
    "'@' => '$',",
    "define('@', '$');",
    'data.put("@", "$");',
    'if ("$" == @) {',
    "// @ = $",
    "ENV @ $",
    "./run --@ $ --now",
    "<@>$</x>",
    'x = "{\\"@\\": \\"$\\"}"',
)


def left(secret: str, place: str) -> str:
    """What of a secret is seen in a line."""
    _, bar, shown = secret.partition("|")
    hidden = shown if bar and len(shown) > PART else secret.partition("|")[0]
    found = redact(f"a = 1\n{place.replace('$', secret.replace('|', ''))}\nb = 2\n")
    assert found.startswith("a = 1\n")
    assert found.endswith("\nb = 2\n")
    return next((hidden[at : at + PART] for at in range(len(hidden) - PART + 1) if hidden[at : at + PART] in found), "")


@pytest.mark.parametrize("service", EVIDENT)
def test_keys_that_are_known_by_themselves(service: str) -> None:
    rng = random.Random(service)
    assert {place: left(EVIDENT[service](rng), place) for place in EVIDENT_PLACES} == dict.fromkeys(EVIDENT_PLACES, "")


@pytest.mark.parametrize("service", NAMED)
def test_keys_that_are_known_by_their_name(service: str) -> None:
    rng = random.Random(service)
    name, make = NAMED[service]
    places = [place.replace("@", name, 1) for place in NAMED_PLACES]
    assert {place: left(make(rng), place) for place in places} == dict.fromkeys(places, "")


@pytest.mark.parametrize("host", ["db.internal:5432/x", "[::1]:6379", "${HOST}/x", "{host}/x"])
@pytest.mark.parametrize("place", ['x = "$"', "URL=$", "# $", "<url>$</url>", "git clone $ x"])
def test_passwords_in_urls(host: str, place: str) -> None:
    for user in ("app", "", "u%40x.io"):
        url = place.replace("$", f"postgres://{user}:Zk3vQ9pLw2Xr7T@{host}")
        assert "Zk3v" not in redact(url)
    assert redact(f"postgres://app:{{password}}@{host}") == f"postgres://app:{{password}}@{host}"


@pytest.mark.parametrize(
    "line",
    [
        "path = FileNotFoundError('the package exists only in memory')",
        'storageKey = "app:v2:settings"',
        'pattern = "[a-z0-9]+(?:-[a-z0-9]+)*"',
        'std::string token("identifier");',
        'return get_password("Enter the password of user 1")',
        'if ("a-word" == token) {',
        "set token value to the one of 2019",
        'artifact = "midfill-0.4.2-py3"',
        "sha256 = '6f630fad67cda0ee1fb1f562db3aa53e6f630fad67cda0ee1fb1f562db3aa53e'",
        'rev = "84983e441c3bd26ebaae4aa1f95129e5e54670f1"',
        'request_id = "84983e441c3bd26ebaae4aa1f95129e5"',
        "sgp_format = pul_request = squ_are",
        "APCoreComponentFactoryBuilder2",
        "EAAFactoryOfFactories = sl.Module",
        "v1.0-beta, v1.0-rc1",
        "#define X509_V_ERR_AKID_ISSUER_SERIAL_MISMATCH 31",
        "VALIDATOR_CONFIG_KEY = '__validator_config2__'",
        'CONVNEXT_PW1: "convnext.{bid}.pw1",',
        "f(x=some_function_name_of_ours_2)",
    ],
)
def test_what_looks_alike_stays(line: str) -> None:
    assert redact(line) == line


@pytest.mark.parametrize("line", ['use("$")', "x = ['$']", "f(b'$',\n)", 'say "$"'])
def test_hexadecimal_in_quotes(line: str) -> None:
    text = line.replace("$", "84983e441c3bd26ebaae4aa1f95129e5")
    assert "84983e441c3b" not in redact(text)
