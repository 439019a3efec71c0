"""Files that belong together, in a folder or in a repository on the model hub: the same names in both."""

from pathlib import Path

from pairmi.backbones.pretrained import HUB_ID
from pairmi.types import PairmiError


def file_of(source: str, file: str, what: str) -> Path:
    """Where a file is: `source` itself if it is one, else in that folder, else fetched from the hub's owner/name or owner/name@revision.

    Nothing but this file is fetched; what was fetched before is found without a network.
    """
    place = Path(source)
    if place.is_dir():
        if not (place / file).is_file():
            raise PairmiError(f"{what}: the folder {source} has no {file}")
        return place / file
    name, _, revision = source.partition("@")
    if place.is_file() or HUB_ID.fullmatch(name) is None or place.suffix == Path(file).suffix:
        return place
    return _fetched(name, revision or None, file, what)


def _fetched(name: str, revision: str | None, file: str, what: str) -> Path:
    try:
        from huggingface_hub import constants, errors, hf_hub_download
    except ImportError:
        raise PairmiError(f"{what}: {name!r} is on the model hub; pip install 'pairmi[hub]', or give a file or a folder") from None
    try:
        return Path(hf_hub_download(name, file, revision=revision))
    except errors.RevisionNotFoundError:
        raise PairmiError(f"{what}: {name!r} has no revision {revision!r} on the model hub") from None
    except errors.RemoteEntryNotFoundError:
        raise PairmiError(f"{what}: {name!r} has no {file} on the model hub (other formats are not read)") from None
    except errors.RepositoryNotFoundError:
        raise PairmiError(f"{what}: the model hub has no {name!r}, or it is private and you are not logged in") from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, errors.HfHubHTTPError, OSError) as error:
        why = "HF_HUB_OFFLINE is set and it is not in the cache" if constants.HF_HUB_OFFLINE else str(error).strip().splitlines()[0][:200]
        raise PairmiError(f"{what}: cannot get {name!r} from the model hub ({why}); give a file or a folder") from error
