"""At the coordinator: run what all owners approved, through Flower."""

from pathlib import Path

from flwr.serverapp import ServerApp

from dpadmm.network.run_folder import RunFolder
from dpadmm.network.transports.flower import FlowerTransport

app = ServerApp()


@app.main()
def main(grid, context) -> None:
    run = RunFolder(Path(str(context.run_config["run"])))
    federation = run.federation(1, 300.0, print, lambda: FlowerTransport(grid, run.proposal.roster.names))
    model = run.proposal.estimator.fit(federation)
    model.save(str(context.run_config["out"]), force=True)
    print(model.privacy_)
