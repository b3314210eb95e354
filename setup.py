"""What `pyproject.toml` cannot say: the scenes of the project's root are a folder of the installed package."""

from setuptools import find_namespace_packages, setup

setup(
    packages=[*find_namespace_packages(include=["warpsim", "warpsim.*"]), "warpsim.scenes"],
    package_dir={"warpsim.scenes": "scenes"},
)
