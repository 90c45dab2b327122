"""Names of files that hold secrets. Must not know settings.

Only what holds them by its nature: source code is left alone whatever it is called, so `credentials.py` is not here.
"""

from __future__ import annotations

from collections.abc import Iterator

_DATA = ("json", "yml", "yaml", "toml", "xml", "ini", "cfg", "conf", "properties", "txt", "csv", "env", "enc")


def _data(*names: str) -> Iterator[str]:
    for name in names:
        yield from (name, *(f"{name}.{ending}" for ending in _DATA))


BUILT_IN: tuple[str, ...] = (
    # environments
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    # keys and keystores
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.pk8", "*.ppk", "*.jks", "*.keystore", "*.bks", "*.pkcs12"),
    *("*.kdb", "*.kdbx", "*.ovpn", "*.agekey", "*.gpg", "*.asc", "secring.*"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *(".ssh/", ".gnupg/", ".password-store/"),
    # credentials
    *_data("credentials", ".credentials", "secrets", ".secrets", "secret", "*-credentials", "*_credentials"),
    *("client_secret*.json", "service-account*.json", "service_account*.json", "*serviceaccount*.json"),
    *("*-firebase-adminsdk-*.json", "*-key.json", "local.settings.json", "my.cnf", "vault.yml", "vault.yaml"),
    *(".netrc", "_netrc", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".git-credentials"),
    *(".npmrc", ".yarnrc.yml", ".pypirc", ".dockercfg", ".docker/config.json", "auth.json", "sftp-config.json"),
    *(".htpasswd", "htpasswd", "/etc/shadow", ".boto", ".s3cfg", "rclone.conf", ".vault-token", ".vault_pass*"),
    *_data("kubeconfig"),
    *("*.kubeconfig", ".kube/config"),
    *(".aws/credentials", ".aws/config", ".azure/", ".config/gcloud/", "application_default_credentials.json"),
    # what Terraform knows
    *("*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", ".terraformrc", "terraform.rc", "credentials.tfrc.json"),
    # the user's settings of VS Code, where keys are pasted; on a remote machine they are files like others
    *("Code/User/settings.json", "data/User/settings.json", "data/Machine/settings.json"),
    # what was typed
    ".*_history",
)

# Beside them, made to be shown.
SAMPLES: tuple[str, ...] = tuple(
    f"*{name}.{ending}"
    for name in (".env", ".tfvars", ".npmrc")
    for ending in ("example", "sample", "template", "dist")
) + tuple(f"*.{ending}.env" for ending in ("example", "sample", "template"))
