"""Secrets of every kind in their issuers' formats, made by code, and texts in which tools print them.

No secret stands here literally: scanners of repositories would take it for one.
"""

from __future__ import annotations

import base64
import json
import random
import string
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORD = string.ascii_letters + string.digits
DASHED = WORD + "_-"
HEX = "0123456789abcdef"
BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
BASE64 = WORD + "+/"


class Planted(NamedTuple):
    """A text with a secret in it. Nothing of `secret` may be left once the text is redacted."""

    kind: str
    secret: str
    text: str


def _of(random_: random.Random, characters: str, size: int) -> str:
    return "".join(random_.choices(characters, k=size))


def _uuid(random_: random.Random) -> str:
    return "-".join(_of(random_, HEX, size) for size in (8, 4, 4, 4, 12))


def _json_base64(random_: random.Random, size: int) -> str:
    claims = {"sub": _of(random_, WORD, size), "iat": random_.randrange(10**9)}
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


def _jwt(random_: random.Random) -> str:
    header = base64.urlsafe_b64encode(b'{"alg":"RS256","typ":"JWT","kid":"k1"}').decode().rstrip("=")
    return f"{header}.{_json_base64(random_, random_.randrange(8, 900))}.{_of(random_, DASHED, 86)}"


def pem(random_: random.Random, name: str = "RSA ", lines: int = 25) -> str:
    """Return a private key block; its last line is shorter."""
    body = [_of(random_, BASE64, 64) for _ in range(lines)] + [_of(random_, BASE64, 30) + "=="]
    return "\n".join([f"-----BEGIN {name}PRIVATE KEY-----", *body, f"-----END {name}PRIVATE KEY-----"])


_TOKENS: dict[str, list[tuple[str, str, int]]] = {
    "github-token": [*((f"gh{each}_", WORD, 36) for each in "pousr")],
    "gitlab-token": [("glpat-", DASHED, 20), ("glrt-", DASHED, 20), ("gldt-", DASHED, 20)],
    "stripe-key": [("sk_live_", WORD, 24), ("rk_live_", WORD, 99), ("sk_test_", WORD, 24)],
    "stripe-webhook-secret": [("whsec_", WORD, 32)],
    "openai-key": [("sk-proj-", DASHED, 156), ("sk-svcacct-", DASHED, 120), ("sk-", WORD, 48)],
    "anthropic-key": [("sk-ant-api03-", DASHED, 95), ("sk-ant-admin01-", DASHED, 95)],
    "openrouter-key": [("sk-or-v1-", HEX, 64)],
    "langsmith-key": [("lsv2_pt_", HEX, 43)],
    "groq-key": [("gsk_", WORD, 52)],
    "xai-key": [("xai-", WORD + "_", 80)],
    "perplexity-key": [("pplx-", WORD, 48)],
    "nvidia-key": [("nvapi-", DASHED, 64)],
    "replicate-token": [("r8_", DASHED, 37)],
    "huggingface-token": [("hf_", string.ascii_letters, 34)],
    "tavily-key": [("tvly-", WORD, 32)],
    "npm-token": [("npm_", WORD, 36)],
    "pypi-token": [("pypi-AgEIcHlwaS5vcmc", DASHED, 140)],
    "rubygems-token": [("rubygems_", HEX, 48)],
    "docker-token": [("dckr_pat_", DASHED, 27)],
    "sendinblue-key": [("xkeysib-", HEX, 64)],
    "twilio-key": [("SK", HEX, 32)],
    "mailgun-key": [("key-", HEX, 32), ("key-", "abcdefghijklmnopqrstuvwxyz0123456789", 32)],
    "digitalocean-token": [("dop_v1_", HEX, 64), ("doo_v1_", HEX, 64)],
    "shopify-token": [("shpat_", HEX, 32), ("shpss_", HEX, 32)],
    "square-token": [("sq0atp-", DASHED, 22)],
    "vault-token": [("hvs.", DASHED, 95)],
    "doppler-token": [("dp.pt.", WORD, 43), ("dp.st.dev.", WORD, 43), ("dp.st.prd_eu-1.", WORD, 43)],
    "pulumi-token": [("pul-", HEX, 40)],
    "grafana-token": [("glc_", WORD, 80)],
    "newrelic-key": [("NRAK-", string.ascii_uppercase + string.digits, 27)],
    "sentry-token": [("sntryu_", HEX, 64)],
    "linear-key": [("lin_api_", WORD, 40)],
    "notion-token": [("ntn_", WORD, 46), ("secret_", WORD, 43)],
    "figma-token": [("figd_", DASHED, 40)],
    "supabase-token": [("sbp_", HEX, 40)],
    "tailscale-key": [("tskey-auth-", WORD, 32)],
    "planetscale-token": [("pscale_tkn_", DASHED, 43)],
    "heroku-key": [("HRKU-AA", DASHED, 58)],
    "artifactory-key": [("AKCp", WORD, 69)],
    "easypost-key": [("EZAK", WORD, 54)],
    "age-key": [("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)],
    "prefect-key": [("pnu_", WORD, 36)],
    "openshift-token": [("sha256~", DASHED, 43)],
    "aws-access-key": [("AKIA", BASE32, 16), ("ASIA", BASE32, 16)],
    "aws-bedrock-key": [("ABSK", BASE64, 120)],
    "google-api-key": [("AIza", DASHED, 35)],
    "google-oauth-secret": [("GOCSPX-", DASHED, 28)],
    "google-oauth-token": [("ya29.", DASHED, 120)],
    "aws-session-token": [("IQoJb3JpZ2lu", BASE64, 400), ("FwoGZXIvYXdz", BASE64, 300)],
    "alibaba-key": [("LTAI", WORD, 20)],
    "tencent-key": [("AKID", WORD, 32)],
    "atlassian-token": [("ATATT3xFfGF0", DASHED, 180), ("ATCTT3xFf", DASHED, 180)],
    "buildkite-token": [("bkua_", HEX, 40)],
    "cloudflare-token": [("cfut_", WORD, 48)],
    "contentful-token": [("CFPAT-", DASHED, 43)],
    "databricks-token": [("dapi", HEX, 32)],
    "dropbox-token": [("sl.", DASHED, 135), ("sl.u.", DASHED, 180)],
    "elevenlabs-key": [("sk_", HEX, 48)],
    "fly-token": [("fm2_", BASE64, 200)],
    "gitea-token": [("gto_", HEX, 40)],
    "jfrog-token": [("cmVmdGtuOj", WORD, 54)],
    "mongodb-atlas-key": [("mdb_sa_sk_", DASHED, 40)],
    "neon-key": [("napi_", WORD, 64)],
    "posthog-key": [("phx_", WORD, 43), ("phx_", WORD + "_", 43)],
    "readme-key": [("rdme_", "abcdefghij0123456789", 70)],
    "shippo-token": [("shippo_live_", HEX, 40)],
    "sonar-token": [("squ_", HEX, 40), ("sqp_", HEX, 40)],
    "typeform-token": [("tfp_", DASHED, 59)],
    "vercel-token": [("vcp_", WORD, 56)],
    "wandb-key": [("wandb_v1_", WORD, 77)],
    "facebook-token": [("EAA", WORD, 180)],
    "adafruit-key": [("aio_", WORD, 28)],
    "adobe-secret": [("p8e-", HEX, 32)],
    "bitbucket-token": [("BBDC-", BASE64, 44)],
    "deno-token": [("ddp_", WORD, 36)],
    "klaviyo-key": [("pk_", HEX, 34)],
    "nightfall-key": [("NF-", WORD, 32)],
    "pagarme-key": [("ak_live_", WORD, 30)],
    "ramp-secret": [("ramp_sec_", WORD, 48)],
    "ubidots-token": [("BBFF-", WORD, 30)],
    "frameio-token": [("fio-u-", DASHED, 64)],
    "infracost-key": [("ico-", WORD, 32)],
    "intra42-secret": [("s-s4t2ud-", HEX, 64)],
    "scalingo-token": [("tk-us-", DASHED, 48)],
    "defined-networking-key": [("dnkey-", DASHED, 79)],
    "flutterwave-key": [
        ("FLWSECK-", "abcdefgh0123456789", 32),
        ("FLWSECK_TEST-", "abcdefgh0123456789", 12),
    ],
    "google-hmac-key": [("GOOG1E", BASE32, 55)],
    "lob-key": [("live_", HEX, 35), ("test_", HEX, 35)],
    "salad-key": [("salad_cloud_user_", WORD, 40)],
    "teamwork-token": [("tkn.v1_", BASE64, 71)],
    "pubnub-key": [("sec-c-", BASE64, 48)],
    "dependency-track-key": [("odt_", WORD, 32)],
    "flexport-key": [("shltm_", DASHED, 40)],
    "aiven-password": [("AVNS_", DASHED, 19)],
    "firecrawl-key": [("fc-", HEX, 32)],
    "llamacloud-key": [("llx-", WORD, 48)],
    "inngest-key": [("signkey-prod-", HEX, 64)],
    "intercom-token": [("dG9rO", WORD, 55)],
    "trello-token": [("ATTA", HEX, 72)],
    "n8n-key": [("n8n_api_", HEX, 80)],
    "logfire-token": [("pylf_v1_eu_", WORD, 43)],
    "polar-token": [("polar_oat_", WORD, 43)],
    "segment-token": [("sgp_", WORD, 64)],
    "nuget-key": [("oy2", "abcdefghijklmnopqrstuvwxyz0123456789", 43)],
    "google-refresh-token": [("1//0", DASHED, 99)],
    "endor-token": [("endr+", WORD, 16)],
    "twitch-token": [("oauth:", "abcdefghijklmnopqrstuvwxyz0123456789", 30)],
    "overspill-key": [(prefix, "abcdefghijklmnopqrstuvwxyz234567", 39) for prefix in ("ovs_", "ovl_")],
}


def _made(random_: random.Random) -> dict[str, Callable[[], str]]:
    """Return what makes the secrets that are not a prefix with one run of characters."""
    return {
        "github-token": lambda: f"github_pat_{_of(random_, WORD, 22)}_{_of(random_, WORD, 59)}",
        "sendgrid-key": lambda: f"SG.{_of(random_, DASHED, 22)}.{_of(random_, DASHED, 43)}",
        "slack-token": lambda: "-".join(
            ["xoxb", _of(random_, string.digits, 12), _of(random_, string.digits, 12), _of(random_, WORD, 24)]
        ),
        "postman-key": lambda: f"PMAK-{_of(random_, HEX, 24)}-{_of(random_, HEX, 34)}",
        "terraform-token": lambda: f"{_of(random_, WORD, 14)}.atlasv1.{_of(random_, DASHED, 64)}",
        "dynatrace-token": lambda: f"dt0c01.{_of(random_, BASE32, 24)}.{_of(random_, BASE32, 64)}",
        "mailchimp-key": lambda: f"{_of(random_, HEX, 32)}-us{random_.randrange(1, 22)}",
        "telegram-token": lambda: f"{_of(random_, '123456789', 10)}:AA{_of(random_, DASHED, 33)}",
        "mapbox-token": lambda: f"sk.eyJ1Ijoi{_of(random_, WORD, 60)}.{_of(random_, DASHED, 22)}",
        "plaid-token": lambda: f"access-production-{_uuid(random_)}",
        "hubspot-token": lambda: f"pat-na1-{_uuid(random_)}",
        "launchdarkly-key": lambda: f"sdk-{_uuid(random_)}",
        "sourcegraph-token": lambda: f"sgp_{_of(random_, HEX, 16)}_{_of(random_, HEX, 40)}",
        "azure-client-secret": lambda: f"{_of(random_, WORD, 3)}8Q~{_of(random_, DASHED, 34)}",
        "jwt": lambda: _jwt(random_),
        "onepassword-token": lambda: "-".join(
            ["A3", *(_of(random_, BASE32, size) for size in (6, 6, 5, 5, 5, 5))]
        ),
        "authress-key": lambda: (
            f"sc_{_of(random_, HEX, 20)}.{_of(random_, HEX, 4)}.acc_{_of(random_, HEX, 20)}"
            f".{_of(random_, BASE64, 80)}"
        ),
        "salesforce-token": lambda: f"00D{_of(random_, WORD, 12)}!A{_of(random_, WORD + '._', 95)}",
        "robinhood-key": lambda: f"rh-api-{_uuid(random_)}",
        "voiceflow-key": lambda: f"VF.DM.{_of(random_, HEX, 24)}.{_of(random_, WORD, 16)}",
        "harness-key": lambda: (
            f"pat.{_of(random_, DASHED, 22)}.{_of(random_, HEX, 24)}.{_of(random_, WORD, 20)}"
        ),
        "clickup-token": lambda: f"pk_{random_.randrange(10**7, 10**8)}_{_of(random_, BASE32, 32)}",
        "klaviyo-key": lambda: f"pk_{_of(random_, WORD, 6)}_{_of(random_, HEX, 34)}",
        "zoho-token": lambda: f"1000.{_of(random_, HEX, 32)}.{_of(random_, HEX, 32)}",
        "newrelic-key": lambda: random_.choice(
            [f"{_of(random_, HEX, 32)}FFFFNRAL", f"AA{_of(random_, HEX, 40)}-NRMA"]
        ),
        "stripe-client-secret": lambda: f"pi_{_of(random_, WORD, 24)}_secret_{_of(random_, WORD, 25)}",
        "resend-key": lambda: f"re_{_of(random_, WORD, 8)}_{_of(random_, WORD, 24)}",
        "snyk-token": lambda: f"snyk_uat.{_of(random_, HEX, 8)}.{_of(random_, DASHED, 60)}",
        "telnyx-key": lambda: f"KEY0{_of(random_, '0123456789ABCDEF', 31)}_{_of(random_, WORD, 22)}",
        "circleci-token": lambda: f"CCIPRJ_{_of(random_, WORD, 22)}_{_of(random_, HEX, 40)}",
        "openvsx-token": lambda: f"ovsxat_{_uuid(random_)}",
        "maxmind-key": lambda: f"{_of(random_, WORD, 6)}_{_of(random_, WORD, 29)}_mmk",
    }


_AZURE = (
    ("+ASt", 76, BASE64, "A==", 5),
    ("ACDb", 76, BASE64, "Q==", 5),
    ("APIM", 76, BASE64, "g==", 5),
    ("AIoTC", 33, BASE64, "=", 5),
    ("+ASbB", 33, BASE64, "=", 5),
    ("+AEhA", 33, BASE64, "=", 5),
    ("+ACRB", 42, BASE64, "", 5),
    ("AzSeA", 42, WORD, "", 5),
    ("AzCaP", 33, WORD, "=", 5),
    ("AzFu", 44, DASHED, "w==", 5),
    ("AZDO", 76, WORD, "", 4),
    ("JQQJ99BKAC", 52, WORD, "", 22),
)
"""Marks in keys of Azure: what stands before, of which characters, at the end, and how many before that."""


def _azure(random_: random.Random) -> Iterator[Planted]:
    for mark, before, characters, end, size in _AZURE:
        key = f"a1{_of(random_, characters, before - 2)}{mark}{_of(random_, WORD, size - 1)}x{end}"
        for text in _frames(random_, key):
            yield Planted("azure-key", key.rstrip("="), text)
    for text in _frames(random_, token := f"1.A{_of(random_, DASHED, 80)}.Ag{_of(random_, DASHED, 400)}"):
        yield Planted("microsoft-token", token, text)


def _signed(random_: random.Random) -> Iterator[Planted]:
    """Yield URLs whose signatures are not hexadecimal digits."""
    short, long = f"a1{_of(random_, WORD, 25)}", f"a1{_of(random_, WORD + '~-', 340)}__"
    for signature, url in (
        (short, "https://b.s3.amazonaws.com/k?AWSAccessKeyId=x&Expires=1767225600&Signature={}%3D"),
        (long, "https://d1.cloudfront.net/k?Expires=1767225600&Signature={}&Key-Pair-Id=K2JCJMDEHXQW5F"),
        (_of(random_, WORD, 43), "https://prod-0.eu.logic.azure.com/workflows/1?sp=%2Frun&sv=1.0&sig={}"),
    ):
        yield Planted("signed-url", signature, f"GET {url.format(signature)} 200\n")


def _frames(random_: random.Random, secret: str) -> Iterator[str]:
    """Yield texts with a secret: a log, JSON, an environment, a diff, a stack trace, and escapes."""
    name = random_.choice(["API_TOKEN", "SERVICE_KEY", "credential", "auth.token"])
    yield f"2026-11-23T13:05:{random_.randrange(60):02}Z INFO worker-3 calling api with {secret} took=12ms\n"
    yield json.dumps({"id": 7, "settings": {name: secret, "region": "eu"}, "lines": f"a\n{secret}\nb"})
    yield f"PATH=/usr/bin:/bin\n{name}={secret}\nHOME=/root\n"
    yield f"@@ -1,3 +1,3 @@\n-{name}: old\n+{name}: {secret}\n context\n"
    yield f'  File "/app/client.py", line 31, in call\n    post(url, key="{secret}")\nValueError: bad key\n'
    yield f"\x1b[32m{secret}\x1b[0m ok; https://api.example.com/v1?key={secret}&page=2"


def _in_context(random_: random.Random) -> Iterator[Planted]:
    """Yield the secrets that are known by what is around them."""
    for _ in range(6):
        password = _of(random_, WORD + "!@+=%._-", random_.randrange(8, 40)).strip("@") + "x"
        yield Planted(
            "url-password", password, f"psql postgresql://app:{password}@db.example.com:5432/main\n"
        )
        yield Planted("url-password", password, json.dumps({"url": f"redis://:{password}@10.0.0.7/0"}))
        yield Planted(
            "url-password", password, f"+DATABASE_URL=mysql+pymysql://root:{password}@localhost/x\n"
        )
        secret = _of(random_, BASE64, 38) + "a1"
        yield Planted("aws-secret-key", secret, f"export AWS_SECRET_ACCESS_KEY={secret}\n")
        yield Planted("aws-secret-key", secret, f"[default]\naws_secret_access_key = {secret}\n")
        yield Planted("aws-secret-key", secret, json.dumps({"Credentials": {"SecretAccessKey": secret}}))
        bearer = _of(random_, WORD, 38) + "b2"
        yield Planted("authorization", bearer, f"> Authorization: Bearer {bearer}\r\n> Accept: */*\r\n")
        yield Planted("authorization", bearer, json.dumps({"headers": {"authorization": f"Bearer {bearer}"}}))
        basic = base64.b64encode(f"user:{_of(random_, WORD, 12)}".encode()).decode()
        yield Planted("authorization", basic, f"DEBUG send header Authorization: Basic {basic}\n")
        yield Planted("authorization", basic, f"curl -H 'Authorization: Basic {basic}' https://x.example\n")
        account = _of(random_, BASE64, 86) + "=="
        storage = f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={account};EndpointSuffix=x"
        yield Planted("azure-storage-key", account, json.dumps({"connection": storage}))
        word = _of(random_, WORD, 14)
        yield Planted(
            "connection-password", word, f'cs = "Server=db;Database=x;User Id=sa;Password={word};"\n'
        )
        hook = "/".join([_of(random_, BASE32, 9), _of(random_, BASE32, 9), _of(random_, WORD, 24)])
        yield Planted("slack-webhook", hook, f"POST https://hooks.slack.com/services/{hook} 200\n")


def _basic(random_: random.Random) -> str:
    return base64.b64encode(f"bob:{_of(random_, WORD, 18)}7".encode()).decode()


_CONNECTIONS = (
    "Server=db;Database=x;Uid=root;pwd={}",
    "Password={};Server=db;User ID=u",
    'Data Source=db;User Id=u;Password="{}";',
    "Driver={{ODBC Driver 18}};SERVER=x;DATABASE=d;UID=sa;PWD={}",
    "host=db port=5432 dbname=x user=app password={} sslmode=require",
    "jdbc:postgresql://db:5432/x?user=app&password={}",
    "jdbc:mysql://db/x?user=app&password={}&useSSL=false",
    "jdbc:sqlserver://db:1433;databaseName=x;user=sa;password={};encrypt=true",
    "jdbc:oracle:thin:scott/{}@//db:1521/orcl",
    "cache.redis.cache.windows.net:6380,password={},ssl=True,abortConnect=False",
    "PGPASSWORD={} psql -h db",
)
_KEY_HEADERS = ("X-Api-Key", "x-api-key", "Api-Key", "X-Auth-Token", "PRIVATE-TOKEN", "X-Vault-Token")
_SCHEMES = ("ApiKey ", "SSWS ", "GenieKey ", "Negotiate ", "DPoP ", "Splunk ", "")
_VARIABLES = (
    "API_KEY",
    "CLIENT_SECRET",
    "SECRET_KEY_BASE",
    "DB_PASSWORD",
    "TWILIO_AUTH_TOKEN",
    "access_token",
    "slack_bot_token",
    "app_secret",
    "appSecret",
    "SMTP_PASS",
    "signing_key",
)


def _in_files(random_: random.Random) -> Iterator[Planted]:
    """Yield the secrets of configurations, of headers and of variables."""
    for form in _CONNECTIONS:
        password = _of(random_, WORD, 16) + "x7"
        yield Planted("connection-password", password, f"conn {form.format(password)}\n")
    for header in _KEY_HEADERS:
        key = _of(random_, WORD, 38) + "x7"
        yield Planted("api-key-header", key, f"> GET / HTTP/1.1\r\n> {header}: {key}\r\n> Accept: */*\r\n")
    for scheme in _SCHEMES:
        key = _of(random_, WORD, 38) + "x7"
        yield Planted("authorization", key, f"> Authorization: {scheme}{key}\r\n> Accept: */*\r\n")
    for name in _VARIABLES:
        secret = _of(random_, WORD, 38) + "x7"
        yield Planted("named-secret", secret, f"PATH=/bin\n{name}={secret}\nHOME=/root\n")
        yield Planted("named-secret", secret, json.dumps({name: secret, "region": "eu"}))
        yield Planted("named-secret", secret, f"  - name: {name}\n    value: {secret}\n  - name: B\n")
    for _ in range(3):
        basic, password = _basic(random_), _of(random_, WORD, 16) + "x7"
        yield Planted("registry-password", basic, json.dumps({"auths": {"ghcr.io": {"auth": basic}}}))
        yield Planted("registry-password", basic, f"//npm.acme.com/:_auth={basic}\n")
        yield Planted("registry-password", password, f"//registry.npmjs.org/:_authToken={password}\n")
        docker = base64.b64encode(json.dumps({"auths": {"ghcr.io": {"auth": basic}}}).encode()).decode()
        yield Planted("registry-password", docker, f"data:\n  .dockerconfigjson: {docker}\n")
        yield Planted(
            "netrc-password", password, f"machine api.acme.com\n  login bob\n  password {password}\n"
        )
        yield Planted("file-password", password, f"[pypi]\nusername = bob\npassword = {password}\n")
        yield Planted("file-password", password, f"- name: admin\n  user:\n    password: {password}\n")
        yield Planted("file-password", password, f"- name: admin\n  user:\n    token: {password}\n")
        yield Planted("command-password", password, f"+ curl -sS -u bob:{password} https://a.example/\n")
        yield Planted("file-password", password, f'<add key="ClearTextPassword" value="{password}" />\n')
        encoded = base64.b64encode(_jwt(random_).encode()).decode().rstrip("=")
        yield Planted("jwt", encoded, f"data:\n  namespace: ZGVmYXVsdA==\n  token: {encoded}\nkind: Secret\n")
        wire_guard = _of(random_, BASE64, 42) + "8="
        yield Planted("wireguard-key", wire_guard, f"[Interface]\nPrivateKey = {wire_guard}\n")
        yield Planted("file-password", password, f"db.acme.com:5432:shop:bob:{password}\n*:5432:*:a:x\n")
        hook = f"{_of(random_, string.digits, 19)}/{_of(random_, DASHED, 68)}"
        yield Planted("discord-webhook", hook, f"POST https://discord.com/api/v10/webhooks/{hook} 204\n")
        signature = _of(random_, WORD, 43) + "%3D"
        sas = f"https://a.blob.core.windows.net/c?sv=2022-11-02&se=2027-01-01&sp=r&sig={signature}"
        yield Planted("signed-url", signature, f"GET {sas} 200\n")
        signature = _of(random_, HEX, 64)
        yield Planted("signed-url", signature, f"https://b.s3.amazonaws.com/k?X-Amz-Signature={signature}\n")


_COMMANDS = {
    "command-password": (
        "curl -uapp:{} https://a.example/",
        "curl -sS --user=app:{} https://a.example/",
        "mysqldump -h db -uroot -p{} shop",
        "sshpass -p '{}' ssh host uptime",
        "docker login ghcr.io -u bob -p {}",
        "$key = ConvertTo-SecureString -String '{}' -AsPlainText -Force",
    ),
    "file-password": (
        "[client]\nuser=root\npassword={}",
        "helm upgrade shop ./shop --set auth.password={},replicas=2",
        "<user>bob</user><password>{}</password>",
    ),
    "named-secret": (
        "deploy --token {} --region eu",
        "snowsql -u app --password {}",
        "[registry]\ntoken = '{}'",
        "GET /v1/users?token={}&page=2",
        "  secret: {}",
    ),
    "masked-value": ("::add-mask::{}",),
    "url-token": ("git clone https://{}@git.example.com/x.git", "https://{}:x-oauth-basic@git.example.com/x"),
    "url-password": ("next=postgres%3A%2F%2Fapp%3A{}%40db.example.com%2Fshop",),
    "authorization": ("GET /?header=Authorization%3A%20Bearer%20{}",),
    "cookie": (
        "< Set-Cookie: sid={}; Path=/; HttpOnly",
        "> Cookie: theme=dark; sid={}; lang=en",
        "curl -H 'Cookie: sid={}' https://a.example/",
        '{{"headers": {{"cookie": "sid={}; theme=dark"}}}}',
    ),
}


def _in_commands(random_: random.Random) -> Iterator[Planted]:
    """Yield the secrets of commands, of cookies, and hashes of passwords."""
    for kind, forms in _COMMANDS.items():
        for form in forms:
            secret = "Zk4" + _of(random_, WORD, 20) + "x7"
            yield Planted(kind, secret, f"$ date\n{form.format(secret)}\n$ \n")
    salt, crypt = _of(random_, WORD, 8), WORD + "./"
    hashes = (
        f"$2y$10${_of(random_, crypt, 53)}",
        f"$apr1${salt}${_of(random_, crypt, 22)}",
        f"$6${salt}${_of(random_, crypt, 86)}",
        f"$y$j9T${salt}${_of(random_, crypt, 43)}",
        f"$argon2id$v=19$m=65536,t=3,p=4${salt}${_of(random_, BASE64, 43)}",
    )
    for each in hashes:
        yield Planted("password-hash", each, f"bob:{each}:19000:0:99999:7:::\n")
    response, signature = _of(random_, HEX, 32), _of(random_, HEX, 64)
    digest = f'Digest username="bob", realm="a", nonce="{_of(random_, HEX, 32)}", response="{response}"'
    yield Planted("authorization", response, f"> Authorization: {digest}\r\n")
    yield Planted("signed-url", signature, f"SignedHeaders=host;x-amz-date, Signature={signature}\r\n")
    store = _of(random_, BASE64, 900)
    yield Planted("private-key", store, f"data:\n  keystore.p12: {store}\nkind: Secret\n")
    body = [_of(random_, BASE64, 70) for _ in range(12)]
    lines = "\n".join(["---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----", 'Comment: "a key"', *body])
    end = "---- END SSH2 ENCRYPTED PRIVATE KEY ----"
    yield Planted("private-key", "".join(body), f"$ cat key\n{lines}\n{end}\nbehind\n")


def _wrapped_tokens(random_: random.Random) -> Iterator[Planted]:
    """Yield JSON Web Tokens in lines of 64 and of 76 characters, as mails and terminals wrap them."""
    for width in (64, 76):
        token = _jwt(random_)
        lines = [token[at : at + width] for at in range(0, len(token), width)]
        yield Planted("jwt", "".join(lines[:-1]), "token:\n" + "\n".join(lines) + "\nthe end\n")


def _keys(random_: random.Random) -> Iterator[Planted]:
    """Yield private keys as they are, in JSON, in diffs, indented, in source code and in logs."""
    for name in ("RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED "):
        block = pem(random_, name, random_.randrange(3, 50))
        body = "".join(line for line in block.splitlines() if "-----" not in line)
        lines = block.splitlines()
        yield Planted("private-key", body, f"$ cat key.pem\n{block}\nthe end of the file\n")
        yield Planted(
            "private-key", body, json.dumps({"type": "service_account", "private_key": block + "\n"})
        )
        yield Planted("private-key", body, json.dumps(json.dumps({"private_key": block})))
        yield Planted("private-key", body, "".join(f"+{line}\n" for line in lines) + "+more\n")
        yield Planted(
            "private-key", body, "key: |\n" + "".join(f"    {line}\n" for line in lines) + "next: 1\n"
        )
        yield Planted(
            "private-key", body, "KEY = (\n" + "".join(f'    "{line}\\n"\n' for line in lines) + ")\n"
        )
        logged = "".join(f"2026-11-23T10:00:00.123Z stdout F {line}\n" for line in lines)
        yield Planted("private-key", body, f"{logged}2026-11-23T10:00:00.123Z stdout F done\n")
        yield Planted("private-key", body, block.replace("\n", "\r\n") + "\r\nbehind\r\n")
        searched = "".join(f"conf/key.pem-{number}-{line}\n" for number, line in enumerate(lines))
        yield Planted("private-key", body, f"conf/key.pem-0-# the key\n{searched}")
        objects = "".join(json.dumps({"ts": 1, "msg": line}) + "\n" for line in lines)
        yield Planted("private-key", body, objects)
        coloured = "".join(f"\x1b[32m+{line}\x1b[m\n" for line in lines)
        yield Planted("private-key", body, f"\x1b[36m@@ -0,0 +1 @@\x1b[m\n{coloured}")
        yield Planted("private-key", body, "<key>" + block.replace("\n", "&#10;") + "</key>\n")
        syslog = 'Jan  1 00:00:00 host-1.example.com kubelet[1234]: time="2026-01-01T00:00:00Z" msg="'
        yield Planted("private-key", body, "".join(f'{syslog}{line}"\n' for line in lines))
    form = quote(pem(random_), safe="")
    yield Planted("private-key", form[70:], f"POST /import?key={form}&name=a HTTP/1.1\n")
    putty = "\n".join(_of(random_, BASE64, 64) for _ in range(14))
    heading = "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPrivate-Lines: 14\n"
    yield Planted("private-key", putty.replace("\n", ""), f"{heading}{putty}\nPrivate-MAC: 00ff\n")


def _encoded_keys(random_: random.Random) -> Iterator[Planted]:
    """Private keys in base64: in one line of YAML, in JSON, wrapped, and as a value of a shell."""
    for name in ("RSA ", "EC ", "", "OPENSSH ", "ENCRYPTED ", "DSA "):
        encoded = base64.b64encode(pem(random_, name).encode()).decode()
        body = encoded[40:]
        wrapped = [encoded[at : at + 76] for at in range(0, len(encoded), 76)]
        yield Planted("private-key", body, f"    client-key-data: {encoded}\n- name: admin\n")
        yield Planted("private-key", body, json.dumps({"data": {"tls.key": encoded}}))
        yield Planted("private-key", wrapped[1], "$ base64 key.pem\n" + "\n".join(wrapped) + "\n$ \n")
        yield Planted("private-key", body, f"TLS_KEY={encoded} ./run\n")
        logged = "".join(f"2026-11-23T10:00:00Z web-1  | {line}\n" for line in wrapped)
        yield Planted("private-key", wrapped[1], logged)


def planted(seed: int = 0) -> list[Planted]:
    """Return secrets of all kinds, each in several texts."""
    random_ = random.Random(seed)
    found: list[Planted] = []
    for kind, forms in _TOKENS.items():
        for prefix, characters, size in forms:
            for text_number in range(6):
                secret = prefix + _of(random_, characters, size - 1) + "7"
                if kind == "huggingface-token":
                    secret = secret[:-1] + "q"
                found.append(Planted(kind, secret, list(_frames(random_, secret))[text_number]))
    for kind, make in _made(random_).items():
        for text_number in range(6):
            secret = make()
            found.append(Planted(kind, secret, list(_frames(random_, secret))[text_number]))
    contexts = (_azure, _signed, _in_context, _in_files, _in_commands, _wrapped_tokens, _keys, _encoded_keys)
    return [*found, *(each for context in contexts for each in context(random_))]
