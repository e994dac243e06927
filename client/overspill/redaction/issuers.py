"""The rules for secrets whose form tells their issuer.

The forms are those that the issuers publish, and that GitHub's secret scanning, gitleaks and TruffleHog look
for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.redaction.placeholders import is_mixed, is_varied
from overspill.redaction.rule import SecretRule

if TYPE_CHECKING:
    from collections.abc import Callable

_WORD: Final = r"[A-Za-z0-9]{1,64}"
_DASHED: Final = r"[\w-]{1,64}"
_BASE64: Final = r"[A-Za-z0-9+/=]{1,64}"
_HEX: Final = r"[0-9a-f]{1,64}"


def _token(
    kind: str,
    *prefixes: str,
    least: int,
    more: str = _DASHED,
    characters: str = "",
    check: Callable[[str, int, int], bool] = is_varied,
) -> SecretRule:
    """Return the rule of a token: a prefix, and at least `least` of the characters that `more` has."""
    body = characters or more[: more.rindex("{")]
    return SecretRule(kind, prefixes, f"{body}{{{least}}}", more, check=check)


def _hex(kind: str, *prefixes: str, size: int) -> SecretRule:
    """Return the rule of a prefix with hexadecimal digits."""
    return SecretRule(kind, prefixes, rf"[0-9A-Fa-f]{{{size}}}(?![A-Za-z0-9])", check=is_varied)


ISSUERS: Final = (
    SecretRule(
        "aws-access-key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z2-7]{16}(?![A-Za-z0-9])", check=is_varied
    ),
    _token("aws-session-token", "IQoJb3JpZ2lu", "FwoGZXIvYXdz", least=80, more=_BASE64),
    _token(
        "aws-bedrock-key", "ABSK", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t", least=100, more=_BASE64
    ),
    _token("google-api-key", "AIza", least=35),
    _token("google-oauth-secret", "GOCSPX-", least=24),
    _token("google-oauth-token", "ya29.", least=30),
    SecretRule(
        "azure-client-secret", ("Q~",), r"[\w~.-]{31,34}(?![\w~-])", lead=r"[\w~.]{3}\d", lead_width=4
    ),
    SecretRule("azure-storage-key", ("AccountKey=",), r"([A-Za-z0-9+/]{80,88}={0,2})", check=is_varied),
    SecretRule(
        "azure-shared-key",
        ("SharedAccessKey=",),
        r"([A-Za-z0-9+/]{40,60}={0,2})",
        check=is_varied,
        is_bounded=False,
    ),
    _token("github-token", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", least=36, more=_WORD),
    _token("github-token", "github_pat_", least=40),
    _token("gitlab-token", "glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glsoat-", least=20),
    _token("gitlab-token", "GR1348941", least=20),
    _token("gitlab-token", "glcbt-", "glagent-", "gloas-", "glimt-", "glffct-", least=20),
    _token("gitea-token", "gta_", "gto_", "gtp_", least=40, more=_HEX),
    _token("bitbucket-token", "ATBB", least=28, more=_WORD),
    SecretRule(
        "slack-token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxo-", "xoxc-", "xoxd-"),
        r"[0-9A-Za-z%-]{16}",
        r"[0-9A-Za-z%-]{1,64}",
        check=is_mixed,
    ),
    SecretRule("slack-token", ("xapp-",), r"\d-[A-Z0-9]{6,64}-\d{6,64}-[A-Za-z0-9]{4}", _WORD),
    _token("slack-token", "xoxe.xoxb-", "xoxe.xoxp-", least=100),
    SecretRule(
        "slack-webhook",
        tuple(f"hooks.slack.com/{path}/" for path in ("services", "workflows", "triggers")),
        r"([A-Za-z0-9]{6,20}/[A-Za-z0-9]{6,20}/[A-Za-z0-9/]{16})",
        r"[A-Za-z0-9/]{1,64}",
        is_bounded=False,
    ),
    SecretRule(
        "discord-webhook",
        ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        r"(\d{15,22}/[\w-]{40})",
        _DASHED,
        is_bounded=False,
    ),
    SecretRule(
        "teams-webhook",
        (".webhook.office.com/webhookb2/",),
        r"([0-9a-f-]{36}@[0-9a-f-]{36}/IncomingWebhook/[0-9a-f]{32})",
        r"[0-9a-f/-]{1,64}",
        is_bounded=False,
    ),
    SecretRule(
        "telegram-token", (":AA",), r"[\w-]{33}(?![\w-])", lead=r"\d{8,10}", lead_width=10, check=is_mixed
    ),
    _token(
        "stripe-key",
        "sk_live_",
        "sk_test_",
        "rk_live_",
        "rk_test_",
        "sk_prod_",
        "rk_prod_",
        least=16,
        more=_WORD,
    ),
    _token("stripe-webhook-secret", "whsec_", least=32, more=_BASE64),
    _token("openai-key", "sk-proj-", "sk-svcacct-", "sk-service-", "sk-admin-", least=32),
    SecretRule("openai-key", ("sk-",), r"[A-Za-z0-9]{32}", _WORD, check=is_mixed),
    SecretRule("anthropic-key", ("sk-ant-",), r"[a-z]{3,8}[0-9]{2}-[\w-]{32}", _DASHED, check=is_varied),
    SecretRule("openrouter-key", ("sk-or-",), r"v1-[A-Za-z0-9]{32}", _WORD, check=is_varied),
    _token("langfuse-key", "sk-lf-", least=32),
    _token("langsmith-key", "lsv2_pt_", "lsv2_sk_", least=32),
    _token("groq-key", "gsk_", least=40, more=_WORD),
    _token("xai-key", "xai-", least=60, more=_WORD),
    _token("perplexity-key", "pplx-", least=40, more=_WORD),
    _token("nvidia-key", "nvapi-", least=50),
    _token("replicate-token", "r8_", least=37, more=_WORD),
    _token("huggingface-token", "hf_", "api_org_", least=34, more=_WORD),
    _token("tavily-key", "tvly-", "tvly-dev-", "tvly-prod-", least=28, more=_WORD),
    _token("together-key", "tgp_v1_", least=40),
    _token("pinecone-key", "pcsk_", least=40),
    _token("npm-token", "npm_", least=36, more=_WORD),
    _token("pypi-token", "pypi-", least=50, characters=r"AgE[\w-]"),
    _hex("rubygems-token", "rubygems_", size=48),
    _token("docker-token", "dckr_pat_", "dckr_oat_", least=24),
    _token("sendgrid-key", "SG.", least=16, characters=r"[\w-]{22}\.[\w-]"),
    _hex("sendinblue-key", "xkeysib-", size=64),
    _hex("twilio-key", "SK", size=32),
    _hex("mailgun-key", "key-", size=32),
    _hex("digitalocean-token", "dop_v1_", "doo_v1_", "dor_v1_", size=64),
    _token("shopify-token", "shpat_", "shpca_", "shppa_", "shpss_", least=32, more=r"[A-Fa-f0-9]{1,64}"),
    _token("square-token", "sq0atp-", "sq0csp-", least=22),
    _token("facebook-token", "EAA", least=80, more=_WORD),
    SecretRule("square-token", ("EAA",), r"A[\w-]{40}", _DASHED, check=is_varied),
    _token("vault-token", "hvs.", "hvb.", "hvr.", least=24),
    SecretRule(
        "terraform-token", (".atlasv1.",), r"[\w-]{60}", _DASHED, lead=r"[A-Za-z0-9]{14}", lead_width=14
    ),
    _token(
        "doppler-token", "dp.pt.", "dp.st.", "dp.sa.", "dp.ct.", "dp.scim.", "dp.audit.", least=40, more=_WORD
    ),
    _token("pulumi-token", "pul-", least=40, more=_HEX),
    _token("grafana-token", "glsa_", least=32),
    _token("grafana-token", "glc_", "eyJrIjoi", least=32, more=_BASE64),
    _token("newrelic-key", "NRAK-", "NRII-", "NRIQ-", least=24),
    _token("dynatrace-token", "dt0c01.", "dt0s16.", least=24, more=r"[A-Za-z0-9.]{1,96}"),
    _token("sentry-token", "sntryu_", least=64, more=_HEX),
    _token("sentry-token", "sntrys_eyJ", least=40, more=r"[\w+/=]{1,64}"),
    _token("linear-key", "lin_api_", "lin_oauth_", least=32, more=_WORD),
    _token("notion-token", "ntn_", "secret_", least=43, more=_WORD),
    _token("figma-token", "figd_", "figu_", "figp_", least=36),
    SecretRule("postman-key", ("PMAK-",), r"[0-9a-f]{24}-[0-9a-f]{34}"),
    _token("supabase-token", "sbp_", least=40, more=_HEX),
    _token("supabase-token", "sb_secret_", least=28),
    _token("netlify-token", "nfp_", least=36, more=_WORD),
    _token("tailscale-key", "tskey-auth-", "tskey-api-", "tskey-client-", least=24),
    _token(
        "planetscale-token", "pscale_tkn_", "pscale_pw_", "pscale_oauth_", least=32, more=r"[\w.=-]{1,64}"
    ),
    _token("circleci-token", "CCIPAT_", least=40),
    _token("heroku-key", "HRKU-", least=36),
    _token("artifactory-key", "AKCp", least=60, more=_WORD),
    _token("onepassword-token", "ops_eyJ", least=100, more=_BASE64),
    _token("age-key", "AGE-SECRET-KEY-1", least=58, more=r"[A-Z0-9]{1,64}"),
    _token("prefect-key", "pnu_", "pnb_", least=36, more=_WORD),
    _token("easypost-key", "EZAK", "EZTK", least=54, more=_WORD),
    _token("openshift-token", "sha256~", least=43),
    _token("databricks-token", "dapi", least=32, more=_HEX),
    _token("atlassian-token", "ATATT3xFf", "ATCTT3xFf", "ATBBxFf", least=50, more=r"[\w=-]{1,64}"),
    SecretRule(
        "mailchimp-key",
        ("-us",),
        r"\d{1,2}(?![A-Za-z0-9])",
        lead="[0-9a-f]{32}",
        lead_width=32,
        check=is_varied,
    ),
    _token("mapbox-token", "sk.eyJ1Ijoi", least=40, characters=r"[\w.-]", more=r"[\w.-]{1,64}"),
    _token("contentful-token", "CFPAT-", least=43),
    _token("dropbox-token", "sl.", "sl.u.", least=120, check=is_mixed),
    _token("duffel-token", "duffel_live_", "duffel_test_", least=40, more=r"[\w=-]{1,64}"),
    _token("flutterwave-key", "FLWSECK-", "FLWSECK_TEST-", least=12, more=r"[\da-h]{1,64}"),
    SecretRule(
        "plaid-token", ("access-production-", "access-development-", "access-sandbox-"), r"[0-9a-f-]{36}"
    ),
    _token("braintree-token", "access_token$production$", least=32, more=r"[0-9a-z$]{1,64}"),
    SecretRule("hubspot-token", ("pat-na", "pat-eu"), r"\d-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
    _token("readme-key", "rdme_", least=70, more=r"[a-z0-9]{1,64}"),
    _hex("shippo-token", "shippo_live_", "shippo_test_", size=40),
    _hex("sourcegraph-token", "slk_", size=64),
    SecretRule("sourcegraph-token", ("sgp_",), r"(?:[0-9A-Fa-f]{16}_|local_)?[0-9A-Fa-f]{40}"),
    _token("typeform-token", "tfp_", least=40),
    _token("fly-token", "fm1_", "fm1r_", "fm1a_", "fm2_", least=40, more=_BASE64),
    _token("fly-token", "fo1_", least=40),
    _token("render-key", "rnd_", least=28, more=_WORD),
    _token("neon-key", "napi_", least=40, more=_WORD),
    _hex("buildkite-token", "bkua_", size=40),
    _hex("elevenlabs-key", "sk_", size=48),
    _token("runpod-key", "rpa_", least=40, more=_WORD),
    _token("vercel-token", "vcp_", "vck_", "vci_", "vca_", "vcr_", least=24, more=_WORD),
    _token("cerebras-key", "csk-", least=40, more=_WORD),
    _hex("e2b-key", "e2b_", size=40),
    _token("browserbase-key", "bb_live_", least=24),
    _token("jina-key", "jina_", least=40, check=is_mixed),
    _token("apify-token", "apify_api_", least=34, more=_WORD),
    _token("posthog-key", "phx_", least=40, more=_WORD),
    _token("razorpay-key", "rzp_live_", "rzp_test_", least=14, more=_WORD),
    _token("sonar-token", "sqco_", least=56, more=_WORD),
    _hex("sonar-token", "squ_", "sqp_", "sqa_", size=40),
    SecretRule("launchdarkly-key", ("sdk-", "api-"), r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
    _token("cloudflare-token", "cfut_", "cfat_", "cfk_", least=40, more=_WORD),
    _token("alibaba-key", "LTAI", least=20, more=_WORD, check=is_mixed),
    _token("tencent-key", "AKID", least=32, more=_WORD, check=is_mixed),
    _token("clojars-token", "CLOJARS_", least=60, more=r"[a-z0-9]{1,64}"),
    _token("mongodb-atlas-key", "mdb_sa_sk_", least=40),
    _token("wandb-key", "wandb_v1_", least=60),
    _token("rootly-token", "rootly_", least=60, more=_HEX),
    _token("settlemint-token", "sm_pat_", "sm_aat_", "sm_sat_", least=16, more=_WORD),
    _token("jfrog-token", "cmVmd", least=54, more=_WORD, check=is_mixed),
    SecretRule("linkedin-secret", ("WPL_AP1.",), r"[A-Za-z0-9]{16}\.[A-Za-z0-9]{6}={0,2}"),
    SecretRule("octopus-key", ("API-",), r"[A-Z0-9]{25,31}(?![A-Za-z0-9])", check=is_mixed),
    SecretRule(
        "onepassword-token",
        ("A3-",),
        r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
        check=is_varied,
    ),
    _token("adafruit-key", "aio_", least=28, more=_WORD, check=is_mixed),
    _token("bitbucket-token", "BBDC-", least=40, more=r"[\w+/@-]{1,64}"),
    _hex("bannerbear-key", "bb_pr_", "bb_ma_", size=30),
    _token("cloudflare-token", "v1.0-", least=150, check=is_mixed),
    _token("deno-token", "ddp_", "ddw_", least=36, more=_WORD),
    _token("fleetbase-key", "flb_live_", least=20, more=_WORD),
    _hex("klaviyo-key", "pk_", size=34),
    _token("nightfall-key", "NF-", least=32, more=_WORD, check=is_mixed),
    _token("pagarme-key", "ak_live_", least=30, more=_WORD),
    _token("ramp-secret", "ramp_sec_", least=48, more=_WORD),
    SecretRule("robinhood-key", ("rh-api-",), r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
    SecretRule(
        "salesforce-token",
        ("!A",),
        r"[\w.]{95}",
        r"[\w.]{1,64}",
        lead="00[A-Za-z0-9]{13}",
        lead_width=15,
        is_bounded=False,
    ),
    _token("salesforce-token", "5AEP861", "5Aep861", least=80, more=r"[\w.=]{1,64}"),
    _token("ubidots-token", "BBFF-", "BBUS-", least=30, more=_WORD),
    SecretRule("voiceflow-key", ("VF.", "VF.DM.", "VF.WS."), r"[0-9A-Fa-f]{24}\.[A-Za-z0-9]{16}"),
    SecretRule(
        "tines-webhook",
        (".tines.com/webhook/",),
        r"([0-9a-f]{32}/[0-9a-f]{32})",
        is_bounded=False,
    ),
    SecretRule(
        "zapier-webhook",
        ("hooks.zapier.com/hooks/catch/",),
        r"(\d{5,12}/[a-z0-9]{5,16})",
        is_bounded=False,
    ),
    _token("adobe-secret", "p8e-", least=32, more=_WORD),
    SecretRule(
        "authress-key",
        ("sc_", "ext_", "scauth_", "authress_"),
        r"[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[\w+/=-]{30}",
        r"[\w+/=-]{1,64}",
    ),
    _token("frameio-token", "fio-u-", least=60, more=r"[\w=-]{1,64}"),
    SecretRule(
        "harness-key", ("pat.", "sat."), r"[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}", check=is_varied
    ),
    _token("infracost-key", "ico-", least=32, more=_WORD, check=is_mixed),
    _hex("intra42-secret", "s-s4t2ud-", "s-s4t2af-", size=64),
    SecretRule(
        "maxmind-key", ("_mmk",), r"(?![A-Za-z0-9])", lead=r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}", lead_width=36
    ),
    _token("scalingo-token", "tk-us-", least=48),
    _token("defined-networking-key", "dnkey-", least=60, more=r"[\w=-]{1,64}"),
    _hex("newrelic-key", "NRJS-", "NRBR-", size=19),
    SecretRule("gitlab-token", ("_gitlab_session=",), r"([0-9a-z]{32})", is_bounded=False),
    _token("overspill-key", "ovs_", "ovl_", least=20),
)
