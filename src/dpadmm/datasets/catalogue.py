"""Every data set we know by name: where its home is, what its bytes must be, what it is and under which terms.

Two checksums guard a data set. `RawFile.sha256` is that of the file at its home. `CatalogueEntry.content_sha256` is
taken over dtype, shape and bytes of the converted features and labels (see `arrays.content_sha256`); it is required
of every download and of every file in the cache, and alone decides where a raw checksum is None.
`CatalogueEntry.npz_sha256` is that of the reference npz file as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpadmm.datasets import raw
from dpadmm.errors import InvalidParameter

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_MNIST = ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist")
_CC_BY = "CC BY 4.0, as the UCI repository states"


@dataclass(frozen=True)
class RawFile:
    """One file at the home of a data set; `urls` are tried in order."""

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class CatalogueEntry:
    """One data set. Without `files` it cannot be downloaded, and `by_hand` says where a person gets it."""

    name: str
    description: str
    licence: str
    npz_sha256: str
    content_sha256: str
    files: tuple[RawFile, ...] = ()
    converter: raw.Converter | None = None
    by_hand: str = ""


def _uci(folder: str, name: str, sha256: str) -> RawFile:
    return RawFile(name, (f"{_UCI}/{folder}/{name}",), sha256)


def _libsvm(name: str, sha256: str) -> RawFile:
    return RawFile(name, (f"{_LIBSVM}/{name}",), sha256)


def _mnist(name: str, sha256: str) -> RawFile:
    return RawFile(name, tuple(f"{home}/{name}" for home in _MNIST), sha256)


_ENTRIES = (
    CatalogueEntry(
        name="adult",
        description="UCI Adult (1994 census), complete rows, 6 min-max numeric + 98 one-hot columns; +1 is >50K.",
        licence=_CC_BY,
        npz_sha256="7f9f4594fe72ab34c1f801976ec59e043066539cdee8a9b7619f43db01f8a9b5",
        content_sha256="936034a4cfddf94b4b6ab36d2c3b76ae294574b152fd117db266cb38b4c72e7b",
        files=(
            _uci("adult", "adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
            _uci("adult", "adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
        ),
        converter=raw.adult,
    ),
    CatalogueEntry(
        name="a9a",
        description="LIBSVM a9a and a9a.t: Adult in 123 sparse binary features.",
        licence=f"derived from UCI Adult: {_CC_BY}",
        npz_sha256="f40d1cf7cbe03b89d3de305b5b0b9b9afa001b130adf523fc92cd4e525a03388",
        content_sha256="51e13534f7aab1883d493297baa0714b264bbe6d33882c42dc394b399d8dfb27",
        files=(
            _libsvm("a9a", "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"),
            _libsvm("a9a.t", "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"),
        ),
        converter=raw.libsvm("a9a", "a9a.t", 123),
    ),
    CatalogueEntry(
        name="mushrooms",
        description="UCI Mushroom (agaricus-lepiota), one-hot, stalk-root kept apart; +1 is poisonous.",
        licence=_CC_BY,
        npz_sha256="aa316f736c110dee73e6eff1ea1e7a9272be5a67b372077b3c4f133535500251",
        content_sha256="a1c78b1efc7b66bb57cd962dd3733d36c7392b4cd31a37a126a7cc9c891931d0",
        files=(
            _uci(
                "mushroom", "agaricus-lepiota.data", "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e"
            ),
        ),
        converter=raw.mushrooms,
    ),
    CatalogueEntry(
        name="w8a",
        description="LIBSVM w8a and w8a.t: web pages in 300 sparse binary features, 3 % positive.",
        licence="not stated by its home (Platt 1998, through LIBSVM): check before redistribution",
        npz_sha256="acd62f04561e65dfa5412d8e4735f78f15074ce16f8252770b9bdd0b549ca882",
        content_sha256="27a5aeea9dbefefb68fa68c33c8a4b8f200c11d93be3908de50687ce469a2314",
        files=(
            _libsvm("w8a", "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2"),
            _libsvm("w8a.t", "618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde"),
        ),
        converter=raw.libsvm("w8a", "w8a.t", 300),
    ),
    CatalogueEntry(
        name="covtype",
        description="UCI Covertype, 54 min-max columns; +1 is lodgepole pine, the seven kinds are in extras.",
        licence=f"{_CC_BY}; copyright Colorado State University",
        npz_sha256="f1d4bccf3e89b0aed3d2bc7afa643509a08f08ea5c082a4a44bb274969181768",
        content_sha256="993797e87daa8b10667a826f1a1d49c6f02e5267f3a079597388f344e6eb3276",
        files=(_uci("covtype", "covtype.data.gz", "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771"),),
        converter=raw.covtype,
    ),
    CatalogueEntry(
        name="mnist",
        description="MNIST digits, 784 pixels a row in [0, 1], 60,000 + 10,000.",
        licence="CC BY-SA 3.0, as commonly stated",
        npz_sha256="ccc2db0b1cf032844b1d39cbb886b59c1343f80610993f2830e68db84c8ea35a",
        content_sha256="29a4e65de2080fe6cc7c7bd633c753dc42fa118130953f6808eaf0c85d2f59a3",
        files=(
            _mnist("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            _mnist("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            _mnist("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            _mnist("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        ),
        converter=raw.mnist,
    ),
    CatalogueEntry(
        name="bio_train",
        description="KDD Cup 2004 protein homology, training part, 74 unscaled features, 0.9 % positive.",
        licence="not stated by its home (KDD Cup 2004): check before redistribution",
        npz_sha256="dcaf87861f6bab74e73ee8a409ee4fcec615cf091a8215f82a0261c9e8ac0765",
        content_sha256="cd2b12b1102e89e2b86aa0729847a439ca52a5c0fce9ad894de47ec42a2c6227",
        by_hand="register at the KDD Cup 2004 site (https://www.kdd.org/kdd-cup/view/kdd-cup-2004/Data), fetch the "
        "protein homology data and save the 74 features and the label of bio_train.dat",
    ),
    CatalogueEntry(
        name="ipums_br",
        description="IPUMS Brazil as used in the private-learning papers, 52 min-max features.",
        licence="the IPUMS terms of use forbid redistribution",
        npz_sha256="b0b4c9d151d42a21546e1663e2e4c5280b7b218612baa83a36a674adfda5d9e7",
        content_sha256="1ea913c439efd1e4577488ad75d32fd2439f5cd6b92046dfad37e20dec23b6d4",
        by_hand="register at IPUMS International (https://international.ipums.org), make an extract of the Brazilian "
        "census under its terms and save its 52 scaled features and the label",
    ),
)
CATALOGUE: dict[str, CatalogueEntry] = {entry.name: entry for entry in _ENTRIES}
DEMO = "demo"


def names() -> tuple[str, ...]:
    """Every name `load` takes."""
    return (*sorted(CATALOGUE), DEMO)


def find(name: str) -> CatalogueEntry:
    """The entry called `name`, or `InvalidParameter` listing the names there are."""
    if not isinstance(name, str) or name not in CATALOGUE:
        raise InvalidParameter(f"data set {name!r}", "one of " + ", ".join(names()), "choose a known data set")
    return CATALOGUE[name]
