from .writing import SiteError as SiteError
from .writing import SiteReport as SiteReport
from .writing import write_site as write_site
